/*
 * The town (town.h) with something damaged in it, and a queue, `beside`, that has nothing to do
 * with any of it: whatever is damaged, the jobs of that queue run.
 *
 * Its town is that of rig.h with more in it, so that every key of doc/internals.md is there. The
 * clock stands still. A case begins with stand_restore(), damages something and works: stand_sync()
 * ends what the worker runs and claims from all queues, stand_drain() lets all run that can. No
 * call may fail by an error of Lua, not even one that the library catches (stand_load).
 */
#ifndef LATER_TESTS_LUA_STAND_H
#define LATER_TESTS_LUA_STAND_H

#include "lua/lua_lib.h"
#include "rig.h"

#define BESIDE_ROOM 3

static const char *const more_town[] = {
    /* A suspect, pinned jobs, members without a body, the last ids of a user. */
    "X:0 add mail keep 1h suspect", ".ZADD R:solo:mail 5 $X", ".ZREM R:q:mail:5 $X",
    ".HSET R:tries $X 2~2~2~5", ".HSET R:prio mail s", "broadcast web x", "v1_recent me@host $a $b",
    ".HSET bodies late body", ".ZADD foreign 2 nobody", "v1_collect $w 1 mail foreign bodies s - 0",
    "v1_quiet $v on", ".HDEL R:worker:$v quiet",
    "v1_sync $w 1 5 0 1 $P 1 progress mail 0 0 half '' 0 0",
    "v1_sync $w 1 5 0 1 $P 1 checkpoint mail 0 0 '' half 0 0", "v1_keep $w $P 1 kept output",
    /* A batch whose last members end here, a day in a calendar, a chain, what was counted. */
    "batch last then fresh finally fresh on_dead fresh keep 1h pay",
    "add apart batch last keep 1h lock batch x", "add apart batch last x", "batch_seal last",
    "schedule_set daily cron @daily splay 1ms queue apart priority 3 key kk then web pay",
    "1:3 schedules daily", "v1_fire $w 1 daily $1 - - 2025b 0 0 1 1767225600000 2026001",
    "add apart key kk on_dead far then fresh x", "add apart unique solo x",
    "v1_tidy $w 1 mail 5000 3 series:mail 6:5 keys 1~2~3~4~k room 50",
    ".HSET R:config max_payload 1048576", ".ZADD R:schedule:gone 99999999999999 gone",
    "bulk retry web dead rate 1/1h", "3:3 schedules skip", "4:3 schedules queue",
    /* A fair queue: tenants with due and later jobs, and one with a debt. */
    "v1_declare $w 0 1 turns fair=1~w=2:b", "add_many turns key a -- 1 2 3 4 5 6 7 8 9 10 11 12",
    "add_many turns key b priority 3 -- 1 2 3", "add turns key c in 2s x", "add turns x",
    ".ZADD R:fair-debts:turns 900000 gone",
    "add_many beside 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24"};

static const char *const stand_queues[] = {
    "mail", "web",   "nobody",  "bad",   "door",  "third", "undef", "many",  "rates", "over",
    "run",  "fence", "permits", "pair",  "key",   "gcra",  "slide", "fixed", "soon",  "late",
    "set",  "out",   "far",     "apart", "keyed", "raw",   "off",   "fresh", "turns"};

/* What operators, callers and workers do beside the syncs. */
static const char *const stand_work[] = {
    "unlock door me",
    "unlock third me",
    "unlock soon me",
    "unlock many me",
    "unlock rates me",
    "sem_release permits me",
    "sem_release pair me",
    "unlock set me",
    "unlock late me",
    "unlock out me",
    "add fresh key kk rate open x",
    "publish news x",
    "v1_tidy $w 3 mail 86400000 web 86400000 nobody 86400000 2 room 4 retried 3",
    "v1_reap $v $p 1 3 100",
    "v1_fire $w 3 daily $1 - - 2025b 0 0 1 1767225606000 2026001 skip $3 - - 2025b 0 0 1 "
    "1767225606000 2026001 queue $4 - - 2025b 0 0 1 1767225606000 2026001"};

/* What only reads. */
static const char *const stand_reads[] = {
    "v1_health 12000",
    "stats",
    "stats mail",
    "v1_workers",
    "v1_suspects",
    "limits",
    "topics",
    "schedules",
    "schedules skip",
    "seen_list",
    "v1_schedules 0",
    "v1_batches 0",
    "batch_show last",
    "bulk_show",
    "batch_jobs last",
    "find ''",
    "v1_list door parked '' 200",
    "v1_list mail due '' 200",
    "v1_list mail running '' 200",
    "v1_list web dead '' 200",
    "v1_list web done '' 200",
    "v1_export mail due 1 '' '' 200",
    "explain $a",
    "explain $g",
    "explain $s",
    "explain $r",
    "explain $C",
    "explain $D",
    "explain $t",
    "show $a",
    "show $C",
    "result $E",
    "v1_known mail",
    "v1_metrics 0 retried",
    "v1_series",
    "v1_series mail m 490896 2",
    "top failed keys days 2",
    "v1_recents me@host",
    "v2_look 2000 mail web off",
    "schedule_calendar daily 2026",
    "v1_queues '' 100",
    "v1_queues .0:0 100",
    "v1_running",
    "v1_summary",
    "v1_reasons web '' 500",
    "v1_ahead mail 1767225600000 60000 60",
    "v1_gate_names '' 250",
    "v1_gates lock:door sem:permits sem:pair rate:gcra rate:slide rate:fixed lock:prog lock:run"};

/* What lets every job of the town run. */
static const char *const stand_free[] = {"unlock far me",
                                         "unlock undefined me",
                                         "unlock deep me",
                                         "unlock deep me",
                                         "unlock others me",
                                         "unlock others other",
                                         "unlock third third",
                                         "unlock out third",
                                         "unlock soon me",
                                         "resume off",
                                         "v1_exit $p",
                                         "v1_exit $q",
                                         "limit_set gone semaphore 9",
                                         "limit_set shut semaphore 9",
                                         "limit_set pair semaphore 9",
                                         "limit_set permits semaphore 9",
                                         "v1_reap $w $v 1 3 100"};

/* The jobs of the town. must_run: it runs where nothing is damaged. */
static struct stand_job {
    char id[16], queue[24];
    bool has_run, has_ended, must_run;
} stand_jobs[300];
static size_t stand_njobs;

/* What worker $w runs, now and where the town begins. */
static struct stand_held {
    char id[16], start[24], queue[24];
} stand_held[500], stand_first[20];
static int stand_nheld, stand_nfirst;

static const char *stand_what = ""; /* what is damaged, for messages */
static const char *stand_said = ""; /* the last reply to a sync */

/* ---- the town */

/*
 * Load the library so that an error of Lua which it catches fails the call all the same: what fails
 * unseen each time is not done, either.
 */
static void stand_load(void)
{
    static const char begin[] = "local modules = {}\n";
    static const char watch[] =
        "local bug\n"
        "local function watched(fn, ...)\n"
        "  local r = {pcall(fn, ...)}\n"
        "  local text = not r[1] and type(r[2]) == 'string' and r[2]\n"
        "  if text and (not string.find(text, '^%u+ ') or string.find(text, '^ERR ')) then\n"
        "    bug = bug or text\n"
        "  end\n"
        "  return unpack(r, 1, 4)\n"
        "end\n";
    static const char judge[] = "local ok, reply = pcall(run, keys[1], args)\n";
    static const char tell[] = "local its_bug = bug bug = nil\n"
                               "if its_bug then return {err = 'ELATER_BUG ' .. its_bug} end\n";
    const char *argv[] = {"FUNCTION", "LOAD", "REPLACE", NULL};
    struct buf b = BUF_INIT;
    bool is_begun = false, is_judged = false;

    for (const char *p = lua_lib_text; *p != '\0'; p++) {
        bool is_word = p > lua_lib_text && (p[-1] == '.' || p[-1] == '_' || isalnum(p[-1]));

        if (!is_begun && strncmp(p, begin, strlen(begin)) == 0) {
            buf_puts(&b, begin);
            buf_puts(&b, watch);
            p += strlen(begin) - 1;
            is_begun = true;
        } else if (strncmp(p, judge, strlen(judge)) == 0) {
            buf_puts(&b, "local ok, reply = watched(run, keys[1], args)\n");
            buf_puts(&b, tell);
            p += strlen(judge) - 1;
            is_judged = true;
        } else if (!is_word && strncmp(p, "pcall(", 6) == 0) {
            buf_puts(&b, "watched(");
            p += 5;
        } else {
            buf_add(&b, p, 1);
        }
    }
    assert_true(is_begun && is_judged);
    argv[3] = buf_str(&b);
    assert_string_equal(send_args(4, argv, NULL), "laterd");
    buf_done(&b);
}

static void read_jobs(void)
{
    (void)redis("HGETALL R:jobs");
    for (size_t i = 0; i + 1 < reply_count(fx.last); i += 2) {
        const char *record = reply_str(reply_at(fx.last, i + 1)) + 1;
        struct stand_job *job = &stand_jobs[stand_njobs++];

        assert_true(stand_njobs < COUNT(stand_jobs));
        (void)snprintf(job->id, sizeof(job->id), "%s", reply_str(reply_at(fx.last, i)));
        (void)snprintf(job->queue, sizeof(job->queue), "%.*s", (int)strcspn(record, " \n"), record);
    }
    for (size_t i = 0; i < stand_njobs; i++) {
        struct stand_held *held = &stand_first[stand_nfirst];

        if (strcmp(redis("ZSCORE R:running %s", stand_jobs[i].id), meant("$w")) != 0)
            continue;
        memcpy(held->id, stand_jobs[i].id, sizeof(held->id));
        memcpy(held->queue, stand_jobs[i].queue, sizeof(held->queue));
        (void)snprintf(held->start, sizeof(held->start), "%s", redis("HGET R:tries %s", held->id));
        held->start[strcspn(held->start, " ")] = '\0';
        stand_nfirst++;
    }
}

static int stand_open(void **state)
{
    static const char *const copy[] = {"EVAL", COPY_ALL, "0", "0", "1"};

    assert_int_equal(open_rig(state), 0);
    stand_load();
    build();
    for (size_t i = 0; i < COUNT(more_town); i++)
        build_line(more_town[i]);
    rig.built_us = still_clock->fixed_us;
    (void)redis("SELECT 1");
    (void)redis("FLUSHDB");
    (void)redis("SELECT 0");
    assert_string_equal(send_args(COUNT(copy), (const char **)(uintptr_t)copy, NULL), "nil");
    read_jobs();
    return 0;
}

/* The town as it was built. What texts there are is forgotten. */
static void stand_restore(void)
{
    static const char *const copy[] = {"EVAL", COPY_ALL, "0", "1", "0"};

    (void)fx_forget(NULL);
    (void)redis("FLUSHDB");
    (void)send_args(COUNT(copy), (const char **)(uintptr_t)copy, NULL);
    still_set(rig.built_us);
    rig.big = text("%020000d", 1);
    for (size_t i = 0; i < stand_njobs; i++)
        stand_jobs[i].has_run = stand_jobs[i].has_ended = false;
    memcpy(stand_held, stand_first, sizeof(stand_first));
    stand_nheld = stand_nfirst;
}

/* ---- work */

static struct stand_job *find_job(const char *id)
{
    for (size_t i = 0; i < stand_njobs; i++)
        if (strcmp(stand_jobs[i].id, id) == 0)
            return &stand_jobs[i];
    return NULL;
}

static int stand_faults; /* what was wrong so far: a test prints it all, and fails at its end */

static const char *no_bug(const char *line, const char *got)
{
    if (strncmp(got, "!ELATER_BUG", 11) == 0 || strncmp(got, "!ERR", 4) == 0) {
        print_message("%s: %.60s: %.300s\n", stand_what, line, got);
        stand_faults++;
    }
    return got;
}

/* A call as a line of the town. It may be refused, but not by an error of Lua. */
static const char *stand_call(const char *line)
{
    return no_bug(line, call(line));
}

#define STAND_CALLS(list)                                                                          \
    for (size_t i_ = 0; i_ < COUNT(list); i_++)                                                    \
    (void)stand_call((list)[i_])

/* Take the answers of a sync: what could not be told is told again. */
static void end_held(void)
{
    int kept = 0;

    for (int i = 0; i < stand_nheld; i++) {
        struct stand_job *job = find_job(stand_held[i].id);
        const char *answer = at(2, i, -1);

        if (strncmp(answer, "error", 5) == 0)
            stand_held[kept++] = stand_held[i];
        else if (job != NULL && strcmp(answer, "ok") == 0)
            job->has_ended = true;
    }
    stand_nheld = kept;
}

/* -> how many jobs the group has */
static int hold_group(const struct reply *g)
{
    int n = 0;

    for (size_t i = 6; i + 2 < reply_count(g); i += 3, n++) {
        struct stand_held *held = &stand_held[stand_nheld++];
        struct stand_job *job = find_job(reply_str(reply_at(g, i)));

        assert_true(stand_nheld < (int)COUNT(stand_held));
        (void)snprintf(held->id, sizeof(held->id), "%s", reply_str(reply_at(g, i)));
        (void)snprintf(held->start, sizeof(held->start), "%s", shown(reply_at(g, 2)));
        (void)snprintf(held->queue, sizeof(held->queue), "%s", reply_str(reply_at(g, 0)));
        if (job != NULL && job->has_ended)
            stand_faults++,
                print_message("%s: %s of %s ran again\n", stand_what, job->id, job->queue);
        if (job != NULL)
            job->has_run = true;
    }
    return n;
}

/*
 * One sync of worker $w: it ends all that it runs, and has room for all queues. room: in `beside`;
 * held: what it says that it runs still (with 0 a suspect may come, alone). -> how many jobs of
 * `beside` came; -1: it was refused
 */
static int stand_sync(int held, int room)
{
    struct buf b = BUF_INIT;
    int beside = 0;

    buf_printf(&b, "FCALL later_v1_sync 1 " ROOT " %s 1 %d 400 %d", meant("$w"), held, stand_nheld);
    for (int i = 0; i < stand_nheld; i++)
        buf_printf(&b, " %s %s done %s 0 0 ok ''", stand_held[i].id, stand_held[i].start,
                   stand_held[i].queue);
    buf_printf(&b, " %zu", COUNT(stand_queues) + 1);
    for (size_t i = 0; i < COUNT(stand_queues); i++)
        buf_printf(&b, " %s 9 1048576", stand_queues[i]);
    buf_printf(&b, " beside %d 1048576 0", room);
    stand_said = no_bug("v1_sync", send_line(buf_str(&b)));
    buf_done(&b);
    if (stand_said[0] == '!' || strcmp(at(1, -1), "ok") != 0)
        return -1;
    end_held();
    for (int i = 0; i < len_at(3, -1); i++) {
        int n = hold_group(node(3, i, -1));

        beside += strcmp(at(3, i, 0, -1), "beside") == 0 ? n : 0;
    }
    return beside;
}

/* ---- fsck */

static struct stand_finding {
    char kind[24], name[100];
    bool is_repaired;
} stand_findings[200];
static size_t stand_nfindings;

static void ask_phase(const char *function, const char *phase, const char *const *names, size_t n)
{
    const char *argv[300] = {"FCALL", text("later_v1_%s", function), "1", ROOT, phase, "", "200"};

    for (size_t i = 0; i < n; i++)
        argv[7 + i] = names[i];
    do {
        const char *got = send_args((int)(7 + n), argv, NULL);

        if (no_bug(text("%s %s", function, phase), got)[0] == '!')
            return;
        for (int i = 2; i < len_at(-1) && stand_nfindings < COUNT(stand_findings); i++) {
            struct stand_finding *f = &stand_findings[stand_nfindings++];

            (void)snprintf(f->kind, sizeof(f->kind), "%s", at(i, 0, -1));
            (void)snprintf(f->name, sizeof(f->name), "%.99s", at(i, 1, -1));
            f->is_repaired = int_at(i, 4, -1) == 1;
        }
        argv[5] = at(0, -1);
    } while (argv[5][0] != '\0');
}

static bool begins_as(const char *name, const char *const *with, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strncmp(name, with[i], strlen(with[i])) == 0)
            return true;
    return false;
}

/* All phases of `later fsck`, as cmd_fsck.c orders them. function: audit or repair */
static void stand_fsck(const char *function)
{
    static const char *const sets[] = {"q:", "solo:", "dead:", "done:", "parked:", "pin:"};
    static const char *const gates[] = {"lock:", "sem:", "rate:granted:", "wait:", "granted:"};
    static const char *const phases[] = {"running",  "jobs",    "workers", "tries",    "errors",
                                         "failures", "results", "cancel",  "progress", "resume"};
    static const char *const last[] = {"parked",  "holds",  "batches", "schedules",
                                       "cursors", "topics", "seen"};
    const char *keys[600], *some[200];
    size_t n = 0, nsome = 0;

    stand_nfindings = 0;
    (void)redis("KEYS " ROOT ":*");
    for (; n < reply_count(fx.last) && n < COUNT(keys); n++)
        keys[n] = text("%s", reply_str(reply_at(fx.last, n)) + sizeof(ROOT));
    for (size_t i = 0; i < n; i++)
        if (begins_as(keys[i], sets, COUNT(sets)))
            ask_phase(function, "set", &keys[i], 1);
    for (size_t i = 0; i < COUNT(phases); i++)
        ask_phase(function, phases[i], NULL, 0);
    ask_phase(function, "queue", stand_queues, COUNT(stand_queues));
    for (size_t i = 0; i < n && nsome < COUNT(some); i++)
        if (begins_as(keys[i], gates, COUNT(gates)))
            some[nsome++] = keys[i];
    ask_phase(function, "gates", some, nsome);
    for (size_t i = 0; i < COUNT(last); i++)
        ask_phase(function, last[i], NULL, 0);
    for (size_t i = 0; i < n; i++)
        if (strncmp(keys[i], "members:", 8) == 0)
            ask_phase(function, "members", &keys[i], 1);
}

/* Let all that waits run. */
static void stand_drain(void)
{
    STAND_CALLS(stand_work);
    STAND_CALLS(stand_free);
    for (int round = 0; round < 6; round++) {
        if (stand_sync(round % 3 == 2 ? 0 : 1, 9) < 0)
            stand_faults++, print_message("%s, and then: %.300s\n", stand_what, stand_said);
        still_set(still_clock->fixed_us + (round < 2 ? 1500 : 3600000) * INT64_C(1000));
    }
}

#endif
