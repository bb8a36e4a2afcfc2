/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Numbers for people. Invariant: what is printed rounds once, and the unit is
 * chosen after rounding, so that 1023.99 KiB is "1 MiB", never "1024 KiB".
 */
#include "words/units.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"

/* the widest is a double's 2^1023 in EiB, cut: no such size exists */
#define NUMBER_BYTES 24

static const char *const unit_names[] = {"B",   "KiB", "MiB", "GiB",
                                         "TiB", "PiB", "EiB"};
#define UNIT_COUNT (sizeof(unit_names) / sizeof(unit_names[0]))

static size_t unit_of(double bytes)
{
    double value = fabs(bytes);
    size_t unit = 0;

    while (unit + 1 < UNIT_COUNT && value >= 1023.95) {
        value /= 1024;
        unit++;
    }
    return unit;
}

static int decimals_of(double value, size_t unit)
{
    return unit == 0 || fabs(value) >= 99.95 ? 0 : 1;
}

/* "14" and not "14.0": a size is exact enough without, a rate keeps it. */
static void drop_zero(char *text)
{
    size_t length = strlen(text);

    if (length > 2 && strcmp(text + length - 2, ".0") == 0) {
        text[length - 2] = '\0';
    }
}

static void put_decimals(double value, size_t unit, int decimals, bool sign,
                         char *text)
{
    double scaled = ldexp(value, -10 * (int)unit);
    double floor_value = decimals == 1 ? 0.05 : 0.5;

    if (fabs(scaled) < floor_value) {
        scaled = 0; /* neither "-0" nor "+0" */
        sign = false;
    }
    snprintf(text, NUMBER_BYTES, sign ? "%+.*f" : "%.*f", decimals, scaled);
}

static const char *unknown(char *text)
{
    return strcpy(text, "?");
}

static void put_number(double value, size_t unit, bool sign, char *text)
{
    put_decimals(value, unit, decimals_of(ldexp(value, -10 * (int)unit), unit),
                 sign, text);
}

/* A change has a sign, and one digit behind the point always. */
static const char *put_size(double bytes, bool is_change,
                            char text[SEEP_UNITS_TEXT_BYTES])
{
    char number[NUMBER_BYTES];
    size_t unit = unit_of(bytes);

    if (!isfinite(bytes)) {
        return unknown(text);
    }
    put_number(bytes, unit, is_change, number);
    if (!is_change) {
        drop_zero(number);
    }
    snprintf(text, SEEP_UNITS_TEXT_BYTES, "%s %s", number, unit_names[unit]);
    return text;
}

const char *seep_units_bytes(double bytes, char text[SEEP_UNITS_TEXT_BYTES])
{
    return put_size(bytes, false, text);
}

const char *seep_units_change(double bytes, char text[SEEP_UNITS_TEXT_BYTES])
{
    return put_size(bytes, true, text);
}

const char *seep_units_rate(double bytes_per_s,
                            char text[SEEP_UNITS_TEXT_BYTES])
{
    seep_units_change(bytes_per_s * 60, text);
    if (isfinite(bytes_per_s)) {
        strcat(text, "/min");
    }
    return text;
}

const char *seep_units_interval(const struct seep_interval *interval,
                                double scale, char text[SEEP_UNITS_TEXT_BYTES])
{
    char number[NUMBER_BYTES];
    char error[NUMBER_BYTES];
    double estimate = interval->estimate * scale;
    double half = (interval->high - interval->low) / 2 * scale;
    double larger = fmax(fabs(estimate), half);
    size_t unit = unit_of(larger);
    int decimals = decimals_of(ldexp(larger, -10 * (int)unit), unit);

    if (!isfinite(estimate)) {
        return unknown(text);
    }
    if (!isfinite(half)) { /* an open bound: no symmetric error exists */
        return seep_units_change(estimate, text);
    }
    put_decimals(estimate, unit, decimals, true, number);
    put_decimals(half, unit, decimals, false, error);
    snprintf(text, SEEP_UNITS_TEXT_BYTES, "%s ±%s %s", number, error,
             unit_names[unit]);
    return text;
}

const char *seep_units_bounds(const struct seep_interval *interval,
                              double scale, char text[SEEP_UNITS_TEXT_BYTES])
{
    char low[NUMBER_BYTES];
    char high[NUMBER_BYTES];
    size_t unit = unit_of(interval->estimate * scale);

    if (!isfinite(interval->low) && !isfinite(interval->high)) {
        return strcpy(text, "no bound known");
    }
    put_number(interval->low * scale, unit, false, low);
    put_number(interval->high * scale, unit, false, high);
    if (!isfinite(interval->low)) {
        snprintf(text, SEEP_UNITS_TEXT_BYTES, "at most %s", high);
    } else if (!isfinite(interval->high)) {
        snprintf(text, SEEP_UNITS_TEXT_BYTES, "at least %s", low);
    } else {
        snprintf(text, SEEP_UNITS_TEXT_BYTES, "%s to %s", low, high);
    }
    return text;
}

const char *seep_units_duration(double seconds,
                                char text[SEEP_UNITS_TEXT_BYTES])
{
    if (!isfinite(seconds) || seconds < 0 || seconds > 1e12) {
        return unknown(text);
    }
    if (seconds < 0.9995) {
        snprintf(text, SEEP_UNITS_TEXT_BYTES, "%.0f ms", seconds * 1000);
        return text;
    }
    if (seconds < 59.95) {
        snprintf(text, SEEP_UNITS_TEXT_BYTES, "%.1f s", seconds);
        return text;
    }
    uint64_t whole = (uint64_t)(seconds + 0.5);
    unsigned long long minutes = whole / 60;
    if (minutes < 60) {
        snprintf(text, SEEP_UNITS_TEXT_BYTES, "%llu min %02u s", minutes,
                 (unsigned)(whole % 60));
    } else if (minutes < 24 * 60) {
        snprintf(text, SEEP_UNITS_TEXT_BYTES, "%llu h %02u min", minutes / 60,
                 (unsigned)(minutes % 60));
    } else {
        snprintf(text, SEEP_UNITS_TEXT_BYTES, "%llu d %02u h",
                 minutes / (24ULL * 60), (unsigned)(minutes / 60 % 24));
    }
    return text;
}

const char *seep_units_count(double count, char text[SEEP_UNITS_TEXT_BYTES])
{
    char digits[32];
    size_t out = 0;

    if (!isfinite(count) || fabs(count) > 1e18) {
        return unknown(text);
    }
    size_t length = (size_t)snprintf(digits, sizeof(digits), "%.0f",
                                     fabs(count) < 0.5 ? 0.0 : count);
    for (size_t i = 0; i < length; i++) {
        bool first = i == 0 || (i == 1 && digits[0] == '-');
        if (!first && (length - i) % 3 == 0) {
            text[out++] = ',';
        }
        text[out++] = digits[i];
    }
    text[out] = '\0';
    return text;
}

const char *seep_units_share(double share, char text[SEEP_UNITS_TEXT_BYTES])
{
    double percent = share * 100;

    if (!isfinite(percent)) {
        return unknown(text);
    }
    if (percent > 0 && percent < 0.1) {
        return strcpy(text, "< 0.1 %");
    }
    snprintf(text, SEEP_UNITS_TEXT_BYTES,
             percent == 0 || percent >= 9.95 ? "%.0f %%" : "%.1f %%", percent);
    return text;
}

static int unit_seconds(const char *name, double *ret_seconds)
{
    static const struct {
        const char *name;
        double seconds;
    } units[] = {
        {"ms", 1e-3}, {"s", 1},       {"sec", 1},   {"m", 60},      {"min", 60},
        {"h", 3600},  {"hour", 3600}, {"d", 86400}, {"day", 86400},
    };

    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (strcasecmp(name, units[i].name) == 0) {
            *ret_seconds = units[i].seconds;
            return 0;
        }
    }
    return -EINVAL;
}

int seep_units_parse_rate(const char *text, double *ret_bytes_per_s)
{
    const char *slash = strchr(text, '/');
    char size[40];
    uint64_t bytes;
    double seconds;

    if (slash == NULL || (size_t)(slash - text) >= sizeof(size) ||
        unit_seconds(slash + 1, &seconds) < 0) {
        return -EINVAL;
    }
    memcpy(size, text, (size_t)(slash - text));
    size[slash - text] = '\0';
    int error = seep_size_parse(size, &bytes);
    if (error == 0) {
        *ret_bytes_per_s = (double)bytes / seconds;
    }
    return error;
}

/* One number with its unit off *text, "1h" of "1h30m"; without a unit it is
 * seconds. @return 0 or -EINVAL */
static int take_part(const char **text, double *ret_number, double *ret_unit)
{
    size_t digits = strspn(*text, "0123456789.");
    char unit[8] = "";
    size_t letters;
    char *end;

    if (digits == 0 || digits > 12 ||
        tolower((unsigned char)(*text)[1]) == 'x') {
        return -EINVAL;
    }
    *ret_number = strtod(*text, &end);
    if (end != *text + digits) {
        return -EINVAL;
    }
    end += strspn(end, " \t");
    letters = strcspn(end, "0123456789. \t");
    if (letters >= sizeof(unit)) {
        return -EINVAL;
    }
    memcpy(unit, end, letters);
    end += letters;
    *text = end + strspn(end, " \t");
    *ret_unit = 1;
    return *unit == '\0' ? 0 : unit_seconds(unit, ret_unit);
}

/* Units come down: "1h30m", and not "5m5m". */
int seep_units_parse_duration(const char *text, double *ret_seconds)
{
    double last_unit = INFINITY;
    double sum = 0;

    do {
        double number;
        double unit;
        int error = take_part(&text, &number, &unit);

        if (error != 0 || unit >= last_unit) {
            return -EINVAL;
        }
        last_unit = unit;
        sum += number * unit;
    } while (*text != '\0');
    *ret_seconds = sum;
    return 0;
}
