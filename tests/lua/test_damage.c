/*
 * A foreign type at each key of doc/internals.md in turn, while jobs wait, are parked, granted and
 * running (R15). It harms what the key is for: the jobs of another queue run on, and when the key
 * is put back or removed, nothing is lost but what it held.
 */
#include <fnmatch.h>

#include "base/cleanup.h"
#include "stand.h"

enum { ROUNDS = 4, OF_A_KIND = 3 };

/*
 * Without these a sync can do nothing, or claim nothing. It says so with the name of the key, and
 * changes nothing that the next one would need.
 */
static const char *const GREAT[] = {"jobs",  "running", "tries",  "workers", "worker:$w",
                                    "holds", "heads",   "timers", "queues",  "cancel",
                                    "prio",  "paused",  "clock"};

/* These are not there in the town, and a sync looks for them. */
static const char *const ABSENT[] = {"granted:run", "aside:run", "solo:run", "due:run", "dead:run"};

static struct key {
    char name[120], type[8]; /* name: behind the root */
} all[700];
static size_t nall;

static char *kinds[200]; /* patterns of the table of internals.md */
static size_t nkinds, of_kind[200];

/* ---- which keys there are */

static void learn_key(const char *name)
{
    for (size_t i = 0; i < nall; i++)
        if (strcmp(all[i].name, name) == 0)
            return;
    assert_true(nall < COUNT(all));
    (void)snprintf(all[nall].name, sizeof(all[0].name), "%s", name);
    (void)snprintf(all[nall++].type, sizeof(all[0].type), "%s", redis("TYPE R:%s", name));
}

/* Learn of the keys that are there. */
static void learn_keys(void)
{
    const char *names[700];
    size_t n = 0;

    (void)redis("KEYS " ROOT ":*");
    for (; n < reply_count(fx.last); n++)
        names[n] = text("%s", reply_str(reply_at(fx.last, n)) + sizeof(ROOT));
    for (size_t i = 0; i < n; i++)
        learn_key(names[i]);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct key *)a)->name, ((const struct key *)b)->name);
}

/* `R:line:<queue>:<gate>` -> a pattern of fnmatch for what is behind the root */
static void learn_kind(const char *p, size_t n)
{
    char *kind = mem_new(n + 1), *to = kind;

    for (size_t i = 0; i < n; i++) {
        bool is_name = p[i] == '<';

        *to++ = is_name ? '*' : p[i];
        while (is_name && i + 1 < n && p[i] != '>')
            i++;
    }
    *to = '\0';
    assert_true(nkinds < COUNT(kinds));
    kinds[nkinds++] = kind;
}

/* The first column of the table of keys. Channels are no keys. */
static void read_kinds(void)
{
    CLEANUP_FREE char *path = mem_printf("%s/doc/internals.md", test_source_dir());
    FILE *f = fopen(path, "re");
    char line[1000];

    assert_non_null(f);
    while (fgets(line, sizeof(line), f) != NULL) {
        char *end = strncmp(line, "| `R:", 5) == 0 ? strstr(line, " | ") : NULL;

        if (end == NULL || strncmp(end, " | channel", 10) == 0)
            continue;
        *end = '\0';
        for (char *p = strstr(line, "`R:"); p != NULL; p = strstr(p + 1, "`R:"))
            if (strncmp(p, "`R:ended:", 9) != 0) /* a channel beside a key */
                learn_kind(p + 3, strcspn(p + 3, "`"));
    }
    (void)fclose(f);
    assert_true(nkinds > 60);
}

/* -> the number of the pattern that fits best: the longest */
static size_t kind_of(const char *name)
{
    size_t best = nkinds;

    for (size_t i = 0; i < nkinds; i++)
        if (fnmatch(kinds[i], name, 0) == 0 &&
            (best == nkinds || strlen(kinds[i]) > strlen(kinds[best])))
            best = i;
    if (best == nkinds)
        fail_msg("key %s is not in the table of doc/internals.md", name);
    return best;
}

static bool is_great(const char *name)
{
    for (size_t i = 0; i < COUNT(GREAT); i++)
        if (strcmp(meant(GREAT[i]), name) == 0)
            return true;
    return false;
}

/* Enough of each kind; of the queues whose jobs are let in or granted, all. */
static bool is_tried(const struct key *k)
{
    bool is_of_gate = strstr(k->name, "run") != NULL || strstr(k->name, "soon") != NULL;

    return strstr(k->name, "beside") == NULL &&
           (of_kind[kind_of(k->name)]++ < OF_A_KIND || is_of_gate || test_is_long());
}

/* ---- one key */

static void work(bool is_stopped, bool learns)
{
    for (int round = 0; round < ROUNDS; round++) {
        int n = stand_sync(1, BESIDE_ROOM);

        if (is_stopped ? n > 0 : n < BESIDE_ROOM)
            fail_msg("%s: round %d: %d jobs of the queue beside it ran: %.300s", stand_what, round,
                     n, n < 0 ? stand_said : at(6, -1));
        if (round == 0)
            STAND_CALLS(stand_reads);
        if (round % 2 == 0)
            STAND_CALLS(stand_work);
        if (learns)
            learn_keys();
        still_set(still_clock->fixed_us + 1500000);
    }
}

/* What a removed key held: jobs, which are buried; definitions, for which jobs wait. */
static bool was_held_by(const struct key *k, const struct stand_job *job)
{
    bool is_of_key = strstr(k->name, job->queue) != NULL || strstr(k->name, job->id) != NULL;
    const char *is = state_of(job->id);

    return strcmp(k->name, "limits") == 0 ? strcmp(is, "parked") == 0
                                          : is_of_key && strcmp(is, "dead") == 0;
}

/* Every job has run that runs without damage. */
static void assert_nothing_lost(const struct key *k, bool is_removed)
{
    for (size_t i = 0; i < stand_njobs; i++) {
        struct stand_job *job = &stand_jobs[i];

        if (job->must_run && !job->has_run && !job->has_ended &&
            !(is_removed && was_held_by(k, job)))
            fail_msg("%s: %s of %s has not run: %.200s", stand_what, job->id, job->queue,
                     fcall("later_show %s", job->id));
    }
}

static void try_key(const struct key *k, bool is_removed)
{
    const char *verb = strcmp(k->type, "list") == 0 ? "SET" : "RPUSH";

    stand_restore();
    stand_what = text("%s, and then %s", k->name, is_removed ? "removed" : "put back");
    (void)redis("RENAME R:%s moved", k->name);
    assert_true(redis("%s R:%s foreign", verb, k->name)[0] != '!');
    work(is_great(k->name), false);
    (void)redis("DEL R:%s", k->name);
    if (!is_removed)
        (void)redis("RENAME moved R:%s", k->name);
    stand_fsck("repair");
    stand_drain();
    assert_nothing_lost(k, is_removed);
}

/* Without damage: which keys come up, which jobs run. */
static void run_undamaged(void)
{
    stand_restore();
    stand_what = "nothing";
    learn_keys();
    work(false, true);
    stand_drain();
    learn_keys();
    for (size_t i = 0; i < COUNT(ABSENT); i++)
        learn_key(ABSENT[i]);
    qsort(all, nall, sizeof(all[0]), by_name);
    for (size_t i = 0; i < stand_njobs; i++)
        stand_jobs[i].must_run = stand_jobs[i].has_run || stand_jobs[i].has_ended;
}

static void R15_each_key_harms_itself(void **state)
{
    size_t tried = 0;

    (void)state;
    read_kinds();
    run_undamaged();
    for (size_t i = 0; i < nall; i++)
        if (is_tried(&all[i])) {
            try_key(&all[i], false);
            if (!is_great(all[i].name) && (tried++ % 3 == 0 || test_is_long()))
                try_key(&all[i], true);
        }
    for (size_t i = 0; i < nkinds; i++) {
        if (of_kind[i] == 0)
            fail_msg("no key %s was tried", kinds[i]);
        free(kinds[i]);
    }
    printf("figure R15: %zu kinds of keys, %zu keys of a foreign type under waiting, parked, "
           "granted and running jobs; "
           "no other queue stood\n",
           nkinds, tried + COUNT(GREAT));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(R15_each_key_harms_itself, fx_forget)};

    cmocka_set_test_filter(getenv("LATER_ONLY"));
    return cmocka_run_group_tests(tests, stand_open, close_rig);
}
