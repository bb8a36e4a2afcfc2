/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the growth by age says of children that stand on stdin, for
 * tests/simulate/generations.py. A line of
 *
 *     CHILDREN LINES FLOOR_BYTES
 *
 * and for each child one of LIFE_S and its levels; answered by a line of the
 * trend, whether it flattens, and the interval of the rate.
 */
#include <stdio.h>

#include "reader/judge/family.h"

#define CHILDREN_MOST 64

static bool read_child(struct seep_family_ages *ages)
{
    *ages = (struct seep_family_ages){.life_s = 0};
    if (scanf("%lf", &ages->life_s) != 1) {
        return false;
    }
    for (int i = 0; i < SEEP_FAMILY_AGE_LEVELS; i++) {
        if (scanf("%lf", &ages->level[i]) != 1) {
            return false;
        }
    }
    return true;
}

int main(void)
{
    struct seep_family_ages ages[CHILDREN_MOST];
    struct seep_family_age age;
    size_t count;
    size_t lines;
    double floor_bytes;

    while (scanf("%zu %zu %lf", &count, &lines, &floor_bytes) == 3) {
        for (size_t i = 0; i < count; i++) {
            if (count > CHILDREN_MOST || !read_child(&ages[i])) {
                return 1;
            }
        }
        seep_family_age_test(ages, count, lines, floor_bytes, &age);
        printf("%s %d %.9g %.9g %.9g\n", seep_family_trend_name(age.trend),
               age.flattens, age.rate.estimate, age.rate.low, age.rate.high);
    }
    return 0;
}
