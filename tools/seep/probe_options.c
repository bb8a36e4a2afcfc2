/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Options of `seep probe`; see probe.h. Invariant: no file is looked at here,
 * for that is what may hang.
 */
#include <math.h>

#include "option.h"
#include "probe.h"
#include "say.h"
#include "units.h"

#define DEADLINE_S 0.8 /* of the second that Kubernetes gives */
#define DEADLINE_MOST_S 3600

const char seep_probe_help[] =
    "usage: seep probe LIMITS [OPTIONS] RECORDING|DIR...\n\n"
    "May the recorded processes be given requests? One line and an exit code,\n"
    "before the deadline whatever hangs; of several processes the worst "
    "counts.\n\n"
    "  --gpu-free SIZE     that each GPU must have left, like 2GiB\n"
    "  --host-free SIZE    that the host must have left: its control group, "
    "or\n"
    "                      the machine\n"
    "  --max-growth RATE   like 20MiB/min: of the memory that it holds of the\n"
    "                      host, and of each GPU; the lower bound decides\n"
    "  --max-age TIME      since anything was last recorded\n"
    "  --deadline TIME     to answer in (800ms)\n"
    "  --strict            what cannot be told is not ready, exit status 4\n"
    "  --tell FILE         write the line there as well\n"
    "  --json              one JSON document (schema seep-probe/1)\n"
    "  -h, --help          this\n\n"
    "exit status: 0 ready, 3 too little memory left, 5 it grows too fast,\n"
    "6 stale or ended, 4 cannot tell (0 without --strict), 2 wrong usage,\n"
    "1 the probe failed\n";

enum {
    GPU_FREE = 256,
    HOST_FREE,
    MAX_GROWTH,
    MAX_AGE,
    DEADLINE,
    STRICT,
    TELL,
    JSON
};

static const struct option options[] = {
    {"gpu-free", required_argument, NULL, GPU_FREE},
    {"host-free", required_argument, NULL, HOST_FREE},
    {"max-growth", required_argument, NULL, MAX_GROWTH},
    {"max-age", required_argument, NULL, MAX_AGE},
    {"deadline", required_argument, NULL, DEADLINE},
    {"strict", no_argument, NULL, STRICT},
    {"tell", required_argument, NULL, TELL},
    {"json", no_argument, NULL, JSON},
    {"help", no_argument, NULL, 'h'},
    {0},
};

static int take_size(double *ret_bytes)
{
    uint64_t bytes;

    if (seep_units_parse_bytes(optarg, &bytes) < 0) {
        return seep_say_usage("probe", optarg, "is no size like 2GiB");
    }
    *ret_bytes = (double)bytes;
    return 0;
}

static int take_time(double *ret_seconds)
{
    return seep_units_parse_duration(optarg, ret_seconds) == 0
               ? 0
               : seep_say_usage("probe", optarg, "is no time like 30s");
}

static int take_deadline(double *ret_seconds)
{
    int code = take_time(ret_seconds);

    return code != 0 || (*ret_seconds > 0 && *ret_seconds <= DEADLINE_MOST_S)
               ? code
               : seep_say_usage("probe", optarg, "is no deadline like 800ms");
}

static int take_option(int option, struct seep_probe_arguments *arguments)
{
    switch (option) {
    case GPU_FREE:
        return take_size(&arguments->gpu_free_bytes);
    case HOST_FREE:
        return take_size(&arguments->host_free_bytes);
    case MAX_GROWTH:
        return seep_units_parse_rate(optarg, &arguments->growth_bytes_per_s) ==
                       0
                   ? 0
                   : seep_say_usage("probe", optarg,
                                    "is no rate like 20MiB/min");
    case MAX_AGE:
        return take_time(&arguments->age_s);
    case DEADLINE:
        return take_deadline(&arguments->deadline_s);
    case STRICT:
        arguments->strict = true;
        return 0;
    case TELL:
        arguments->tell = optarg;
        return 0;
    case JSON:
        arguments->json = true;
        return 0;
    default:
        arguments->help = true;
        return 0;
    }
}

static bool has_limit(const struct seep_probe_arguments *arguments)
{
    return arguments->gpu_free_bytes >= 0 || arguments->host_free_bytes >= 0 ||
           arguments->growth_bytes_per_s >= 0 || arguments->age_s >= 0;
}

int seep_probe_options_parse(int argc, char **argv,
                             struct seep_probe_arguments *ret_arguments)
{
    int option;
    int code = 0;

    *ret_arguments = (struct seep_probe_arguments){
        .gpu_free_bytes = SEEP_PROBE_UNTOLD,
        .host_free_bytes = SEEP_PROBE_UNTOLD,
        .growth_bytes_per_s = SEEP_PROBE_UNTOLD,
        .age_s = SEEP_PROBE_UNTOLD,
        .deadline_s = DEADLINE_S,
    };
    optind = 1;
    while (code == 0 && (option = seep_option_next("probe", argc, argv, ":h",
                                                   options)) != -1) {
        code = option == SEEP_OPTION_WRONG ? SEEP_EXIT_USAGE
                                           : take_option(option, ret_arguments);
    }
    ret_arguments->first = optind;
    if (code != 0 || ret_arguments->help) {
        return code;
    }
    if (!has_limit(ret_arguments)) {
        return seep_say_usage("probe", "probe",
                              "no limit was named, like --gpu-free 2GiB");
    }
    return ret_arguments->first < argc
               ? 0
               : seep_say_usage("probe", "probe", "no recording was named");
}
