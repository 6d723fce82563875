/*
 * model [--variant NAME] [--full] [--only NAME] [--jobs N] [--workers N] [--attempts N] ...
 *
 * Explores the quick configurations (or the full ones, a variant, or one made by options) and
 * prints for each whether all properties hold. Exit status: 0 all hold; 1 one is broken (its name
 * and the shortest trace are printed); 2 a limit was reached before the end; 64 usage.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "configs.h"
#include "explore.h"

struct option {
    const char *name;
    size_t at; /* in struct conf */
    long most;
};

#define OPTION(name, field, most)                                                                  \
    {                                                                                              \
        name, offsetof(struct conf, field), most                                                   \
    }
static const struct option options[] = {
    OPTION("jobs", jobs, JOBS_MAX),
    OPTION("workers", workers, WORKERS_MAX),
    OPTION("places", places, JOBS_MAX),
    OPTION("attempts", attempts, 4),
    OPTION("crashes", crashes, 4),
    OPTION("silence", silence, 5),
    OPTION("lock", lock, 7),
    OPTION("sem", sem, 7),
    OPTION("late", has_late, 1),
    OPTION("cuts", budget.cut, 9),
    OPTION("freezes", budget.freeze, 9),
    OPTION("kills", budget.crash, 9),
    OPTION("outages", budget.outage, 9),
    OPTION("rewinds", budget.rewind, 9),
    OPTION("fails", budget.fail, 9),
    OPTION("cancels", budget.cancel, 9),
    OPTION("retries", budget.retry, 9),
    OPTION("stops", budget.stop, 9),
};
#define NOPTIONS (sizeof(options) / sizeof(options[0]))

static int usage(void)
{
    fprintf(stderr, "usage: model [--full] [--only NAME] [--double]\n"
                    "       model --variant NAME\n"
                    "       model --NUMBER N ...   one configuration\n"
                    "  limits: --states N, --depth N, --megabytes N (4000)\n  numbers:");
    for (size_t i = 0; i < NOPTIONS; i++)
        fprintf(stderr, " %s", options[i].name);
    fprintf(stderr, "\n  variants:");
    for (unsigned i = 0; i < nvariants; i++)
        fprintf(stderr, " %s", variants[i].name);
    fprintf(stderr, "\n");
    return 64;
}

static int run(const struct conf *c, const struct limits *limits)
{
    struct result r;

    explore(c, limits, stdout, &r);
    printf("%s: %zu states, %zu transitions, depth %u, %.1f s: ", c->name, r.states, r.transitions,
           r.depth, r.seconds);
    if (r.is_unlike)
        printf("state_canon is wrong, ");
    if (r.broken != NULL)
        printf("%s is broken\n", r.broken->name);
    else if (!r.is_whole)
        printf("a limit was met, no violation so far\n");
    else
        printf("all properties hold, no more than %u rounds to the end\n", r.rounds);
    (void)fflush(stdout);
    return r.broken != NULL || r.is_unlike ? 1 : r.is_whole ? 0 : 2;
}

static int run_all(const struct conf *list, unsigned n, const char *only,
                   const struct limits *limits)
{
    int worst = 0;

    for (unsigned i = 0; i < n; i++) {
        int status;

        if (only != NULL && strcmp(only, list[i].name) != 0)
            continue;
        status = run(&list[i], limits);
        if (status == 1)
            return 1;
        worst = status > worst ? status : worst;
    }
    return worst;
}

static bool set_number(struct conf *c, const char *name, long value)
{
    for (size_t i = 0; i < NOPTIONS; i++) {
        if (strcmp(options[i].name, name) == 0 && value >= 0 && value <= options[i].most) {
            ((uint8_t *)c)[options[i].at] = (uint8_t)value;
            return true;
        }
    }
    return false;
}

static bool set_limit(struct limits *limits, const char *name, long value)
{
    if (strcmp(name, "states") == 0)
        limits->states = (size_t)value;
    else if (strcmp(name, "depth") == 0)
        limits->depth = (unsigned)value;
    else if (strcmp(name, "megabytes") == 0)
        limits->bytes = (size_t)value * 1000000;
    else
        return false;
    return true;
}

static const struct variant_of *find_variant(const char *name)
{
    for (unsigned i = 0; i < nvariants; i++) {
        if (strcmp(variants[i].name, name) == 0)
            return &variants[i];
    }
    return NULL;
}

int main(int argc, char **argv)
{
    struct conf own = {.name = "own", .jobs = 1, .workers = 2, .places = 1, .attempts = 2};
    struct limits limits = {.bytes = (size_t)4000 * 1000000};
    const struct variant_of *variant = NULL;
    const char *only = NULL;
    bool is_full = false, is_own = false;

    own.crashes = 2;
    own.silence = 3;
    own.lock = own.sem = 7;
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";

        if (strcmp(argv[i], "--full") == 0) {
            is_full = true;
        } else if (strcmp(argv[i], "--double") == 0) {
            limits.is_double = true;
        } else if (strncmp(argv[i], "--", 2) != 0 || i++ + 1 == argc) {
            return usage();
        } else if (strcmp(argv[i - 1], "--only") == 0) {
            only = value;
        } else if (strcmp(argv[i - 1], "--variant") == 0) {
            variant = find_variant(value);
            if (variant == NULL)
                return usage();
        } else if (set_number(&own, argv[i - 1] + 2, atol(value))) {
            is_own = true;
        } else if (!set_limit(&limits, argv[i - 1] + 2, atol(value))) {
            return usage();
        }
    }
    if (variant != NULL) {
        printf("%s: %s\n", variant->name, variant->text);
        return run(&variant->conf, &limits);
    }
    if (is_own)
        return run(&own, &limits);
    return is_full ? run_all(configs_full, nconfigs_full, only, &limits)
                   : run_all(configs_quick, nconfigs_quick, only, &limits);
}
