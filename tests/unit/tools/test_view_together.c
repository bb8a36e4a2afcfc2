/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* tools/seep/view_sites: sites that grow in step, under their head. */
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fake_report.h"
#include "text/report.h"

static struct fake_report fake;

static int fill(void **state)
{
    (void)state;
    fake_report_fill(&fake);
    return 0;
}

static char *print(const struct seep_text_options *options)
{
    char *text = NULL;
    size_t size;
    struct seep_page page = {.file = open_memstream(&text, &size),
                             .columns = 200};

    seep_view_text_report(&page, &fake.report, options);
    fclose(page.file);
    return text;
}

static void assert_has(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) {
        fail_msg("\"%s\" is not in:\n%s", part, text);
    }
}

static void what_grows_in_step_stands_under_its_head(void **state)
{
    struct seep_text_options options = {.site_limit = 10};

    (void)state;
    fake.report.site_count = 3;
    fake.report.site_total = 3;
    fake.sites[2].class = SEEP_CLASS_BACKING;
    fake.sites[0].role = SEEP_ROLE_HEAD;
    fake.sites[0].keeps_share = 0.33;
    fake.sites[0].group_growth_bytes_per_s =
        (struct seep_interval){900000, 880000, 920000};
    fake.sites[2].role = SEEP_ROLE_LENDER;
    fake.sites[2].keeps_share = 0.018;
    fake.sites[2].has_growth = true;
    fake.sites[2].growth_bytes_per_s =
        (struct seep_interval){200000, 190000, 210000};
    strcpy(fake.sites[0].group_id, fake.sites[0].id);
    strcpy(fake.sites[2].group_id, fake.sites[0].id);
    char *text = print(&options);
    assert_has(text, "libpython3.11\n   lent by ");
    assert_has(text,
               "serve.py:8 load\n       together +51.5 ±1.1 MiB, in step: "
               "CPython hands freed dicts, ");
    assert_has(text, " first line 33 % are live, ");
    assert_has(text, " lends 1.8 %\n suspect ");
    assert_null(strstr(text, "more call sites"));
    free(text);
    fake.sites[2].role = SEEP_ROLE_MEMBER;
    text = print(&options);
    assert_has(text, "\n   with ");
    assert_has(text, "together +51.5 ±1.1 MiB, in step\n");
    assert_null(strstr(text, "CPython hands"));
    free(text);
    options.site_id = fake.sites[2].id;
    text = print(&options);
    assert_has(text, "\n backing ");
    assert_null(strstr(text, "together"));
    free(text);
}

/* A row that is too small stays with those that are. */
static void a_small_member_is_not_told_twice(void **state)
{
    struct seep_text_options options = {.site_limit = 10};

    (void)state;
    fake.report.site_count = 3;
    fake.report.site_total = 3;
    fake.report.verdict.minor_count = 1;
    fake.report.verdict.minor_bytes_per_s = 3000;
    fake.sites[0].role = SEEP_ROLE_HEAD;
    fake.sites[2].class = SEEP_CLASS_MINOR;
    fake.sites[2].role = SEEP_ROLE_MEMBER;
    strcpy(fake.sites[0].group_id, fake.sites[0].id);
    strcpy(fake.sites[2].group_id, fake.sites[0].id);
    char *text = print(&options);
    assert_has(text, " and 1 that grew by less than 1 MiB each, ");
    assert_null(strstr(text, "serve.py:8"));
    assert_null(strstr(text, "together +"));
    free(text);
}

static void of_the_sites_beside_the_first_the_verdict_tells(void **state)
{
    struct seep_text_options options = {.site_limit = 10};

    (void)state;
    fake.report.verdict.growing_count = 3;
    fake.sites[0].role = SEEP_ROLE_HEAD;
    fake.sites[1].class = SEEP_CLASS_LEAK;
    fake.sites[1].role = SEEP_ROLE_MEMBER;
    strcpy(fake.sites[0].group_id, fake.sites[0].id);
    strcpy(fake.sites[1].group_id, fake.sites[0].id);
    char *text = print(&options);
    assert_has(text, "97 % of it at serve.py:31 handle and 1 call site that "
                     "grows in step with it, the rest at");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(what_grows_in_step_stands_under_its_head, fill),
        cmocka_unit_test_setup(a_small_member_is_not_told_twice, fill),
        cmocka_unit_test_setup(of_the_sites_beside_the_first_the_verdict_tells,
                               fill),
    };

    if (setlocale(LC_CTYPE, "C.UTF-8") == NULL) {
        return 77; /* skipped */
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
