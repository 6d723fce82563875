/*
 * The verb fsck. It finds the keys by SCAN. later_v1_audit judges them, and later_v1_repair also
 * repairs them, one page per call.
 */
#include "cli/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "base/text.h"
#include "cli/each_shard.h"
#include "cli/show/json.h"
#include "cli/show/out.h"
#include "store/keys.h"

#define PAGE "100"
#define PAGE_NAMES 200
#define PAGE_QUEUES 50 /* each costs reading 17 keys */
#define PAGE_GATES 50  /* each may have many holders */
#define SCAN_COUNT "1000"
#define STATUS_FINDINGS 1

/* The elements of a finding. */
enum { KIND, NAME, QUEUE, TEXT, REPAIRED };

/* Names, each followed by a NUL. */
struct key_names {
    struct buf bytes;
    size_t n;
};

struct fsck {
    struct cli *cli;
    const char *function;
    const char *phase;       /* the one that page is for */
    char root[80];           /* later:{NS}: */
    struct key_names sets;   /* q:mail:5 dead:mail ... */
    struct key_names queues; /* mail ..., once for each of its sets */
    struct key_names page;   /* name, type pairs not yet sent */
    unsigned long long jobs; /* checked */
    unsigned long long findings, repaired;
};

static void names_add(struct key_names *names, const char *p, size_t n)
{
    buf_add(&names->bytes, p, n);
    buf_add(&names->bytes, "", 1);
    names->n++;
}

static void names_clear(struct key_names *names)
{
    buf_clear(&names->bytes);
    names->n = 0;
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The *ret_n different names, sorted. The caller frees the array, which points into names. */
static const char **names_sorted(struct key_names *names, size_t *ret_n)
{
    const char **sorted = mem_new((names->n + 1) * sizeof(*sorted));
    const char *at = buf_str(&names->bytes);
    size_t n = 0;

    for (size_t i = 0; i < names->n; i++, at += strlen(at) + 1)
        sorted[i] = at;
    qsort(sorted, names->n, sizeof(*sorted), compare);
    for (size_t i = 0; i < names->n; i++) {
        if (n == 0 || strcmp(sorted[n - 1], sorted[i]) != 0)
            sorted[n++] = sorted[i];
    }
    *ret_n = n;
    return sorted;
}

/* ---- findings */

static void put_json(const struct reply *finding)
{
    static const char *const names[] = {"kind", "name", "queue", "text"};
    json_t *line = json_object();

    for (size_t i = KIND; i <= TEXT; i++) {
        const struct reply *value = reply_at(finding, i);

        if (i != QUEUE || reply_len(value) > 0)
            json_put_text(line, names[i], reply_str(value), reply_len(value));
    }
    (void)json_object_set_new(line, "repaired",
                              json_boolean(reply_int(reply_at(finding, REPAIRED))));
    json_print(line);
}

static void put_line(const struct reply *finding)
{
    const struct reply *queue = reply_at(finding, QUEUE);

    out_text(reply_str(reply_at(finding, KIND)), reply_len(reply_at(finding, KIND)));
    out_printf(" ");
    out_text(reply_str(reply_at(finding, NAME)), reply_len(reply_at(finding, NAME)));
    if (reply_len(queue) > 0) {
        out_printf(" (");
        out_text(reply_str(queue), reply_len(queue));
        out_printf(")");
    }
    out_printf(": ");
    out_text(reply_str(reply_at(finding, TEXT)), reply_len(reply_at(finding, TEXT)));
    out_printf("%s\n", reply_int(reply_at(finding, REPAIRED)) != 0 ? ", repaired" : "");
}

static void take_findings(struct fsck *f, const struct reply *r)
{
    for (size_t i = 2; i < reply_count(r); i++) {
        const struct reply *finding = reply_at(r, i);

        f->findings++;
        f->repaired += reply_int(reply_at(finding, REPAIRED)) != 0;
        if (f->cli->json)
            put_json(finding);
        else
            put_line(finding);
    }
}

/* Report a key that looks like ours and is not. Only a person can tell what was meant. */
static void tell_stray(struct fsck *f, const char *key, size_t n)
{
    static const char text[] = "a key that looks like one of this namespace and is not: RENAME it "
                               "(braces, spelling) or delete it";

    f->findings++;
    if (f->cli->json) {
        json_t *line = json_object();

        json_put_text(line, "kind", "stray-key", 9);
        json_put_text(line, "name", key, n);
        json_put_text(line, "text", text, sizeof(text) - 1);
        (void)json_object_set_new(line, "repaired", json_false());
        json_print(line);
        return;
    }
    out_printf("stray-key ");
    out_text(key, n);
    out_printf(": %s\n", text);
}

/* ---- calls */

/* Check one page of a phase. Moves cursor to the next page, "" at the end. */
static int call(struct fsck *f, const char *phase, char cursor[24], const struct key_names *names,
                struct err *err)
{
    const char *argv[3 + 2 * PAGE_NAMES] = {phase, cursor, PAGE};
    const char *at = names != NULL ? names->bytes.data : NULL;
    const struct reply *next;
    struct reply *r;
    int argc = 3;

    for (size_t i = 0; names != NULL && i < names->n; i++, at += strlen(at) + 1)
        argv[argc++] = at;
    r = client_fcall(f->cli->server.client, f->cli->server.target.ns, f->function, argc, argv, NULL,
                     err);
    if (r == NULL)
        return -1;
    next = reply_at(r, 0);
    if (reply_kind(next) != REPLY_STR || reply_len(next) >= 24) {
        reply_free(r);
        return err_set(err, ERR_DATA, "the audit came with a bad cursor");
    }
    text_copy(cursor, 24, reply_str(next));
    if (strcmp(phase, "jobs") == 0)
        f->jobs += (unsigned long long)reply_int(reply_at(r, 1));
    take_findings(f, r);
    reply_free(r);
    return 0;
}

/* Check all pages of a phase. */
static int run_phase(struct fsck *f, const char *phase, const struct key_names *names,
                     struct err *err)
{
    char cursor[24] = "";

    do {
        if (call(f, phase, cursor, names, err) < 0)
            return -1;
    } while (cursor[0] != '\0' && !out_has_failed());
    return 0;
}

static int send_page(struct fsck *f, struct err *err)
{
    int result = f->page.n > 0 ? run_phase(f, f->phase, &f->page, err) : 0;

    names_clear(&f->page);
    return result;
}

/* ---- keys */

/* A key may have any byte in its name. Ours have no NUL, so one with a NUL is a stray key. */
static int take_key(struct fsck *f, const char *key, size_t n, struct err *err)
{
    size_t root = strlen(f->root), len;
    const char *rest = key + root, *queue;

    if (!keys_is_ours(f->cli->server.target.ns, key, n)) {
        tell_stray(f, key, n);
        return 0;
    }
    if (n <= root || memcmp(key, f->root, root) != 0)
        return 0;
    n -= root;
    queue = keys_queue_of_set(rest, n, &len);
    if (queue != NULL) {
        names_add(&f->sets, rest, n);
        names_add(&f->queues, queue, len);
    } else if (strncmp(rest, "q:", 2) == 0 || strncmp(rest, "solo:", 5) == 0 ||
               strncmp(rest, "pin:", 4) == 0 || strncmp(rest, "dead:", 5) == 0 ||
               strncmp(rest, "done:", 5) == 0 || strlen(rest) != n) {
        tell_stray(f, key, n + root);
        return 0;
    }
    /* Payloads are checked last, when it is known which jobs there are. */
    if (strncmp(rest, "big:", 4) == 0)
        return 0;
    names_add(&f->page, rest, n);
    names_add(&f->page, keys_type(rest, n), strlen(keys_type(rest, n)));
    return f->page.n >= PAGE_NAMES ? send_page(f, err) : 0;
}

static int take_payload(struct fsck *f, const char *key, size_t n, struct err *err)
{
    size_t root = strlen(f->root);

    if (strlen(key) != n)
        return 0; /* reported as a stray key already */
    names_add(&f->page, key + root, n - root);
    names_add(&f->page, "string", 6);
    return f->page.n >= PAGE_NAMES ? send_page(f, err) : 0;
}

/* Collect gates and their waiters. */
static int take_gate(struct fsck *f, const char *key, size_t n, struct err *err)
{
    static const char *const kinds[] = {"lock:", "sem:", "rate:granted:", "wait:", "granted:"};
    const char *rest = key + strlen(f->root);

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strlen(key) == n && strncmp(rest, kinds[i], strlen(kinds[i])) == 0)
            names_add(&f->page, rest, strlen(rest));
    }
    return f->page.n >= PAGE_GATES ? send_page(f, err) : 0;
}

/* The members of a batch: a page of names has one, and several pages. */
static int take_members(struct fsck *f, const char *key, size_t n, struct err *err)
{
    if (strlen(key) != n)
        return 0; /* reported as a stray key already */
    names_add(&f->page, key + strlen(f->root), n - strlen(f->root));
    return send_page(f, err);
}

static int scan(struct fsck *f, const char *match,
                int (*take)(struct fsck *f, const char *key, size_t n, struct err *err),
                struct err *err)
{
    char cursor[24] = "0";
    const char *argv[] = {"SCAN", cursor, "MATCH", match, "COUNT", SCAN_COUNT};

    do {
        struct reply *r = client_call(f->cli->server.client, 6, argv, NULL, err);
        const struct reply *keys = reply_at(r, 1);
        int result = r != NULL ? 0 : -1;

        for (size_t i = 0; i < reply_count(keys) && result == 0; i++)
            result = take(f, reply_str(reply_at(keys, i)), reply_len(reply_at(keys, i)), err);
        text_copy(cursor, sizeof(cursor), reply_str(reply_at(r, 0)));
        reply_free(r);
        if (result < 0)
            return -1;
    } while (strcmp(cursor, "0") != 0 && cursor[0] != '\0' && !out_has_failed());
    return send_page(f, err);
}

/* ---- the whole */

static int query_sets(struct fsck *f, struct err *err)
{
    size_t n;
    CLEANUP_FREE const char **sets = names_sorted(&f->sets, &n);
    struct key_names one = {BUF_INIT, 0};
    int result = 0;

    for (size_t i = 0; i < n && result == 0; i++) {
        names_clear(&one);
        names_add(&one, sets[i], strlen(sets[i]));
        result = run_phase(f, "set", &one, err);
    }
    buf_done(&one.bytes);
    return result;
}

/* Returns the number of queues, or -1. */
static long query_queues(struct fsck *f, struct err *err)
{
    size_t n;
    CLEANUP_FREE const char **queues = names_sorted(&f->queues, &n);
    struct key_names some = {BUF_INIT, 0};
    int result = 0;

    for (size_t i = 0; i < n && result == 0; i++) {
        names_add(&some, queues[i], strlen(queues[i]));
        if (some.n == PAGE_QUEUES || i + 1 == n) {
            result = run_phase(f, "queue", &some, err);
            names_clear(&some);
        }
    }
    buf_done(&some.bytes);
    return result < 0 ? -1 : (long)n;
}

/* Run the phases in the order of repairs: later ones may rely on what earlier ones repaired.
 * Returns the number of queues, or -1. */
static long query(struct fsck *f, struct err *err)
{
    static const char *const phases[] = {"running", "jobs",   "tries",    "errors",    "failures",
                                         "results", "cancel", "progress", "resume",    "workers",
                                         "parked",  "holds",  "batches",  "schedules", "cursors",
                                         "topics",  "seen"};
    char match[sizeof(f->root) + 16];
    long queues;

    if (scan(f, "later:*", take_key, err) < 0 || query_sets(f, err) < 0)
        return -1;
    for (size_t i = 0; i < sizeof(phases) / sizeof(phases[0]); i++) {
        if (run_phase(f, phases[i], NULL, err) < 0)
            return -1;
    }
    (void)snprintf(match, sizeof(match), "%s*", f->root);
    f->phase = "gates";
    if (scan(f, match, take_gate, err) < 0)
        return -1;
    (void)snprintf(match, sizeof(match), "%smembers:*", f->root);
    f->phase = "members";
    if (scan(f, match, take_members, err) < 0)
        return -1;
    queues = query_queues(f, err);
    (void)snprintf(match, sizeof(match), "%sbig:*", f->root);
    f->phase = "keys";
    return queues < 0 || scan(f, match, take_payload, err) < 0 ? -1 : queues;
}

static void sum_up(const struct fsck *f, long queues)
{
    if (f->cli->json) {
        json_t *line = json_object();

        json_put_int(line, "jobs", (int64_t)f->jobs);
        json_put_int(line, "queues", queues);
        json_put_int(line, "findings", (int64_t)f->findings);
        json_put_int(line, "repaired", (int64_t)f->repaired);
        json_print(line);
        return;
    }
    out_printf("checked %llu %s in %ld %s: ", f->jobs, f->jobs == 1 ? "job" : "jobs", queues,
               queues == 1 ? "queue" : "queues");
    if (f->findings == 0)
        out_printf("clean\n");
    else
        out_printf("%llu %s (%llu repaired)\n", f->findings,
                   f->findings == 1 ? "finding" : "findings", f->repaired);
}

static int run(struct cli *cli, struct err *err)
{
    bool repairs = cli_value(cli, "repair") != NULL;
    struct fsck f = {
        .cli = cli, .function = repairs ? "later_v1_repair" : "later_v1_audit", .phase = "keys"};
    long queues;

    if (ask_connect(&cli->server, err) < 0)
        return -1;
    (void)snprintf(f.root, sizeof(f.root), "later:{%s}:", cli->server.target.ns);
    queues = query(&f, err);
    if (queues >= 0)
        sum_up(&f, queues);
    buf_done(&f.sets.bytes);
    buf_done(&f.queues.bytes);
    buf_done(&f.page.bytes);
    if (queues < 0 && strstr(err->text, "unknown phase") != NULL)
        (void)err_set(err, ERR_REFUSED,
                      "the library on the server is older than this command: run the later of that "
                      "version, or later setup");
    if (queues < 0)
        return -1;
    return f.findings > f.repaired ? STATUS_FINDINGS : 0;
}

static const struct cli_option options[] = {
    {"repair", NULL, "put right what can be, without ever guessing that a job succeeded"},
    {NULL, NULL, NULL},
};

static int run_each(struct cli *cli, struct err *err)
{
    return each_shard(cli, run, err);
}

const struct cli_verb cmd_fsck = {
    "fsck",
    "",
    "check that nothing is lost or twice in Redis",
    "Look at the whole namespace while it works, a page at a time: every job in exactly\n"
    "one set, running ones held by a worker, a payload for each, indexes that agree,\n"
    "no foreign or stray keys. One line a finding, then a sum.\n"
    "\n"
    "--repair buries a job that cannot be right (`later ls QUEUE --state dead` shows it\n"
    "with the reason \"fsck: ...\", `later retry` runs it again), removes leftovers and\n"
    "puts indexes right. What a worker holds is left to its end, foreign and stray keys\n"
    "to you. Exit status: 0 clean, or all repaired; 1 findings are left. With --json one\n"
    "object a finding, the sum last.",
    0,
    0,
    false,
    options,
    run_each,
};
