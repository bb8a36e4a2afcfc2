/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The last figures; see metrics_page.h. Invariant: both texts are of one
 * refresh, and the lock is held for a copy at most. */
#include "metrics_page.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct seep_metrics_page {
    pthread_mutex_t lock;
    struct seep_metrics_text texts[2];
};

int seep_metrics_page_open(struct seep_metrics_page **ret_page)
{
    struct seep_metrics_page *page = calloc(1, sizeof(*page));

    if (page == NULL) {
        return -ENOMEM;
    }
    pthread_mutex_init(&page->lock, NULL);
    *ret_page = page;
    return 0;
}

void seep_metrics_page_close(struct seep_metrics_page *page)
{
    if (page != NULL) {
        free(page->texts[0].text);
        free(page->texts[1].text);
        pthread_mutex_destroy(&page->lock);
        free(page);
    }
}

void seep_metrics_page_put(struct seep_metrics_page *page,
                           struct seep_metrics_text texts[2])
{
    struct seep_metrics_text old[2];

    pthread_mutex_lock(&page->lock);
    memcpy(old, page->texts, sizeof(old));
    memcpy(page->texts, texts, sizeof(old));
    pthread_mutex_unlock(&page->lock);
    free(old[0].text);
    free(old[1].text);
}

int seep_metrics_page_take(struct seep_metrics_page *page,
                           enum seep_metrics_format format, char **ret_text,
                           size_t *ret_length)
{
    int error = -EAGAIN;

    pthread_mutex_lock(&page->lock);
    const struct seep_metrics_text *text = &page->texts[format];
    if (text->text != NULL) {
        char *copy = malloc(text->length + 1);
        error = copy == NULL ? -ENOMEM : 0;
        if (copy != NULL) {
            memcpy(copy, text->text, text->length + 1);
            *ret_text = copy;
            *ret_length = text->length;
        }
    }
    pthread_mutex_unlock(&page->lock);
    return error;
}
