/*
 * `later stats --prometheus` with the real programs: each line follows the grammar of the format
 * (checked by its own parser, too, where python3-prometheus-client is installed), the figures agree
 * with what was done, ten thousand queues are fast, and hostile fields do no harm.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <regex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "../support/env.h"
#include "../support/shell.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "fixture.h"

#define LONG_MS 60000
#define NAME "[a-zA-Z_:][a-zA-Z0-9_:]*"
#define LABEL "[a-zA-Z_][a-zA-Z0-9_]*=\"([^\"\\]|\\\\[\\\"n])*\""
#define MANY_QUEUES 10000

static regex_t sample_re, help_re, type_re;
static char metrics_path[128];

/* ---- the grammar */

static void compile_grammar(void)
{
    assert_int_equal(regcomp(&help_re, "^# HELP " NAME " [^\\]+$", REG_EXTENDED), 0);
    assert_int_equal(
        regcomp(&type_re, "^# TYPE " NAME " (counter|gauge|histogram|summary)$", REG_EXTENDED), 0);
    assert_int_equal(regcomp(&sample_re,
                             "^" NAME "\\{" LABEL "(," LABEL ")*\\} [0-9]+(\\.[0-9]+)?$",
                             REG_EXTENDED),
                     0);
}

static bool matches(const regex_t *re, const char *line)
{
    return regexec(re, line, 0, NULL, 0) == 0;
}

/* Does the line belong to the family whose TYPE line is above it? */
static bool belongs(const char *line, const char *family, const char *type)
{
    size_t n = strlen(family);
    const char *rest = line + n;

    if (strncmp(line, family, n) != 0)
        return false;
    if (strncmp(rest, "_sum{", 5) == 0 || strncmp(rest, "_count{", 7) == 0)
        return strcmp(type, "histogram") == 0 || strcmp(type, "summary") == 0;
    return rest[0] == '{' || (strcmp(type, "histogram") == 0 && strncmp(rest, "_bucket{", 8) == 0);
}

static int by_text(const void *one, const void *other)
{
    return strcmp(*(char *const *)one, *(char *const *)other);
}

static void assert_each_once(char **names, size_t n)
{
    qsort(names, n, sizeof(*names), by_text);
    for (size_t i = 1; i < n; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            fail_msg("twice: %s", names[i]);
}

/* Check all lines of the text, and cut it up. Each family has HELP, TYPE and its samples, once. */
static void assert_grammar(char *text)
{
    char family[80] = "", type[16] = "", help[80] = "";
    char **series = mem_new((strlen(text) / 8 + 1) * sizeof(*series)), *line;
    char *families[64];
    size_t n = 0, nfamilies = 0;

    while ((line = strsep(&text, "\n")) != NULL && (line[0] != '\0' || text != NULL)) {
        if (matches(&help_re, line)) {
            assert_int_equal(sscanf(line, "# HELP %79s", help), 1);
        } else if (matches(&type_re, line)) {
            assert_int_equal(sscanf(line, "# TYPE %79s %15s", family, type), 2);
            assert_string_equal(family, help);
            assert_true(nfamilies < 64);
            families[nfamilies++] = mem_strdup(family);
        } else if (!matches(&sample_re, line) || !belongs(line, family, type)) {
            fail_msg("not by the grammar: %s", line);
        } else {
            *strstr(line, "} ") = '\0';
            series[n++] = line;
        }
    }
    assert_each_once(series, n);
    assert_each_once(families, nfamilies);
    for (size_t i = 0; i < nfamilies; i++)
        free(families[i]);
    free(series);
}

/* The parser of the format's makers accepts it; skipped where that is not installed. */
static void assert_parses(void)
{
    CLEANUP_FREE char *line =
        mem_printf("python3 -c 'import prometheus_client.parser' 2>/dev/null || exit 0\n"
                   "exec python3 - %s <<'END'\n"
                   "import sys\n"
                   "from prometheus_client.parser import text_string_to_metric_families as parse\n"
                   "families = {f.name: f for f in parse(open(sys.argv[1]).read())}\n"
                   "assert families[\"laterd_jobs\"].type == \"gauge\"\n"
                   "assert families[\"laterd_finished\"].type == \"counter\"\n"
                   "for name in \"laterd_run_seconds\", \"laterd_start_lateness_seconds\":\n"
                   "    assert families[name].type == \"histogram\"\n"
                   "    queues = {}\n"
                   "    for s in families[name].samples:\n"
                   "        queues.setdefault(s.labels[\"queue\"], []).append(s)\n"
                   "    for samples in queues.values():\n"
                   "        of = lambda end: [s.value for s in samples if s.name.endswith(end)]\n"
                   "        assert of(\"_bucket\") == sorted(of(\"_bucket\"))\n"
                   "        assert of(\"_count\") == of(\"_bucket\")[-1:]\n"
                   "END\n",
                   metrics_path);

    test_says(line, 0, "");
}

/* The present metrics, in a file and checked; the caller frees the text. */
static char *scrape(void)
{
    CLEANUP_FREE char *line =
        mem_printf("$LATER --redis %s stats --prometheus >%s", redis.url, metrics_path);
    struct buf text = BUF_INIT;
    char *copy;

    test_says(line, 0, "");
    test_read(metrics_path, &text);
    copy = mem_strdup(buf_str(&text));
    assert_grammar(copy);
    free(copy);
    assert_parses();
    return buf_take(&text);
}

/* The line NAME{namespace="default",LABELS} VALUE is there. */
static bool has(const char *text, const char *name, const char *labels, const char *value)
{
    CLEANUP_FREE char *line = mem_printf("\n%s{namespace=\"default\"%s%s} %s\n", name,
                                         labels[0] ? "," : "", labels, value);

    return strstr(text, line) != NULL;
}

static void assert_has(const char *text, const char *name, const char *labels, const char *value)
{
    if (!has(text, name, labels, value))
        fail_msg("no %s{%s} %s in:\n%s", name, labels, value, text);
}

/* ---- what the metrics say */

static void test_jobs_by_state(void **state)
{
    CLEANUP_FREE char *text = NULL;
    CLEANUP_FREE char *score = mem_printf("%lld", (long long)test_now_ms() - 5000);
    const char *at;

    (void)state;
    free(test_add(&redis, "mail", "in", "1h", "later"));
    free(test_add(&redis, "mail", NULL, NULL, "now"));
    free(test_add(&redis, "mail", "priority", "2", "now"));
    free(test_add(&redis, "mail", "at", "4102444800000", "in 2100"));
    reply_free(test_redis_call(&redis, "ZADD", ROOT ":due:mail", "4102444800000", "raw", score,
                               "raw too", NULL));
    reply_free(test_fcall(&redis, "later_pause", "mail", NULL));
    text = scrape();
    assert_has(text, "laterd_jobs", "queue=\"mail\",state=\"scheduled\"", "3");
    assert_has(text, "laterd_jobs", "queue=\"mail\",state=\"due\"", "3");
    assert_has(text, "laterd_jobs", "queue=\"mail\",state=\"dead\"", "0");
    assert_has(text, "laterd_raw_jobs", "queue=\"mail\"", "2");
    assert_has(text, "laterd_queue_paused", "queue=\"mail\"", "1");
    assert_has(text, "laterd_workers", "state=\"live\"", "0");
    at = strstr(text, "\nlaterd_oldest_due_seconds{namespace=\"default\",queue=\"mail\"} ");
    assert_non_null(at);
    assert_in_range(atoi(strstr(at, "} ") + 2), 5, 60);
}

/* The first value of this sample, which has to be there; queue: its label. */
static double value_of(const char *text, const char *name, const char *queue)
{
    CLEANUP_FREE char *start = mem_printf("\n%s{namespace=\"default\",queue=\"%s\"} ", name, queue);
    const char *at = strstr(text, start);

    assert_non_null(at);
    return strtod(at + strlen(start), NULL);
}

/* Jobs at a gate are not due, so the age of due ones hides them. */
static void test_parked_jobs(void **state)
{
    CLEANUP_FREE char *text = NULL;

    (void)state;
    test_handler(dir, "mail", "sleep 60");
    start_a("concurrency: 3\n");
    for (int i = 0; i < 2; i++)
        free(test_add(&redis, "mail", "lock", "L", "x"));
    do {
        free(text);
        text = scrape();
    } while (!has(text, "laterd_jobs", "queue=\"mail\",state=\"parked\"", "1"));
    assert_in_range((int)(value_of(text, "laterd_oldest_parked_seconds", "mail") * 1000), 0, 30000);
    assert_has(text, "laterd_oldest_due_seconds", "queue=\"mail\"", "0.000");
}

static bool counts_are_told(void *arg)
{
    CLEANUP_FREE char *text = scrape();

    return has(text, "laterd_start_lateness_seconds_count", "queue=\"mail\"", arg) &&
           has(text, "laterd_start_lateness_seconds_count", "queue=\"bad\"", "2");
}

/* A worker tells what it counted when it leaves, and every ten seconds while it runs. */
static void test_what_ran(void **state)
{
    CLEANUP_FREE char *text = NULL, *line = NULL;
    CLEANUP_FREE char *id = NULL;

    (void)state;
    test_handler(dir, "mail", "sleep 0.1");
    test_handler(dir, "bad", "exit 1");
    start_a("concurrency: 3\ndefaults: { attempts: 2, backoff: { first: 10ms } }\n");
    for (int i = 0; i < 4; i++)
        free(test_add(&redis, "mail", NULL, NULL, "x"));
    id = test_add(&redis, "bad", NULL, NULL, "x");
    assert_true(test_until_state(&redis, id, "dead", LONG_MS));
    assert_true(test_until(counts_are_told, (void *)(uintptr_t) "4", LONG_MS));
    text = scrape();
    assert_has(text, "laterd_workers", "state=\"live\"", "1");
    assert_has(text, "laterd_places", "", "3");
    assert_has(text, "laterd_running_jobs", "", "0");
    assert_has(text, "laterd_retries_total", "", "1");
    assert_has(text, "laterd_finished_total", "queue=\"mail\",outcome=\"done\"", "4");
    assert_has(text, "laterd_finished_total", "queue=\"bad\",outcome=\"dead\"", "1");
    assert_has(text, "laterd_start_lateness_seconds_bucket", "queue=\"mail\",le=\"3600\"", "4");
    assert_has(text, "laterd_start_lateness_seconds_bucket", "queue=\"mail\",le=\"+Inf\"", "4");
    assert_has(text, "laterd_run_seconds_bucket", "queue=\"mail\",le=\"0.05\"", "0");
    assert_has(text, "laterd_run_seconds_bucket", "queue=\"mail\",le=\"+Inf\"", "4");
    assert_has(text, "laterd_added_total", "queue=\"mail\"", "4");
    assert_has(text, "laterd_failed_attempts_total", "queue=\"bad\"", "2");
    free(test_add(&redis, "mail", NULL, NULL, "one more"));
    assert_true(test_until_state(&redis, id, "dead", LONG_MS));
    assert_true(test_until_lines(a.log, "outcome=done", 5, LONG_MS));
    assert_int_equal(test_laterd_stop(&a), 0);
    free(text);
    text = scrape();
    assert_has(text, "laterd_start_lateness_seconds_count", "queue=\"mail\"", "5");
    assert_has(text, "laterd_run_seconds_count", "queue=\"mail\"", "5");
    assert_has(text, "laterd_run_seconds_count", "queue=\"bad\"", "2");
    /* Seconds, not milliseconds. A busy worker sees a start late, so it may be less than 0.5. */
    assert_true(value_of(text, "laterd_run_seconds_sum", "mail") > 0);
    assert_true(value_of(text, "laterd_run_seconds_sum", "mail") < 50);
    assert_has(text, "laterd_workers", "state=\"live\"", "0");
    line =
        mem_printf("$LATER --redis %s --json stats bad --since 5m | grep -c '\"sum\":{\"added\":1,"
                   "\"done\":0,\"failed\":2,\"dead\":1,'",
                   redis.url);
    test_says(line, 0, "1");
}

/* Users that may write the keys may write nonsense: no reader of the metrics is harmed by it. */
static void test_hostile_fields(void **state)
{
    CLEANUP_FREE char *text = NULL;

    (void)state;
    reply_free(test_redis_call(&redis, "SADD", ROOT ":names", "mail", "a\"} 1\nx{b=\"", "\033[2J",
                               "-", "", NULL));
    reply_free(test_redis_call(&redis, "HSET", ROOT ":stats", "done:mail", "1e99", "retried",
                               "x\ny", NULL));
    reply_free(test_redis_call(&redis, "HSET", ROOT ":series", "mail", "1", "a\"} 1\nx{b=\"", "1",
                               "\033[2J", "x", NULL));
    reply_free(test_redis_call(&redis, "SET", ROOT ":total:mail",
                               "\377\377\377\377\377\377\377\377\377", NULL));
    reply_free(test_redis_call(&redis, "ZADD", ROOT ":dead:mail", "nan", "x", NULL));
    reply_free(test_redis_call(&redis, "ZADD", ROOT ":q:mail:5", "-inf", "x", "inf", "y", NULL));
    reply_free(test_redis_call(&redis, "SET", ROOT ":due:mail", "x", NULL));
    reply_free(test_redis_call(&redis, "HSET", ROOT ":notes", "stray-key:\"\n\033[2J", "1", NULL));
    text = scrape();
    assert_has(text, "laterd_jobs", "queue=\"mail\",state=\"due\"", "1");
    assert_has(text, "laterd_jobs", "queue=\"mail\",state=\"scheduled\"", "1");
    assert_has(text, "laterd_added_total", "queue=\"mail\"", "0");
    assert_null(strstr(text, "\033"));
}

/* Each metric that the dashboard asks for is there. */
static void test_dashboard(void **state)
{
    CLEANUP_FREE char *file = mem_printf("%s/etc/grafana-dashboard.json", test_source_dir());
    CLEANUP_FREE char *line =
        mem_printf("names=$(grep -o 'laterd_[a-z_]*' %s | sort -u)\n"
                   "test $(echo \"$names\" | wc -l) -ge 15 || exit 2\n"
                   "for name in $names; do\n"
                   "    grep -q \"^$name{\" %s || { echo \"$name is missing\"; exit 1; }\n"
                   "done",
                   file, metrics_path);
    CLEANUP_FREE char *text = NULL;
    json_t *json = json_load_file(file, 0, NULL);

    (void)state;
    assert_non_null(json);
    json_decref(json);
    test_handler(dir, "mail", "exit 0");
    start_a("concurrency: 3\n");
    free(test_add(&redis, "mail", NULL, NULL, "x"));
    assert_true(test_until_lines(a.log, "outcome=done", 1, LONG_MS));
    assert_int_equal(test_laterd_stop(&a), 0);
    text = scrape();
    test_says(line, 0, "");
}

static void test_refused_together(void **state)
{
    CLEANUP_FREE char *queue = mem_printf("$LATER --redis %s stats --prometheus mail", redis.url);
    CLEANUP_FREE char *json = mem_printf("$LATER --redis %s --json stats --prometheus", redis.url);

    (void)state;
    test_says(queue, 64, "a format of its own");
    test_says(json, 64, "a format of its own");
    /* Nothing is printed, not even a part, when the server is away. */
    test_redis_kill(&redis, SIGKILL);
    free(queue);
    queue =
        mem_printf("test -z \"$($LATER --redis %s stats --prometheus 2>/dev/null)\"", redis.url);
    test_says(queue, 0, "");
    test_redis_restart(&redis);
}

/* ---- cost */

static void make_queues(int n)
{
    CLEANUP_FREE char *count = mem_printf("%d", n);

    reply_free(test_redis_call(
        &redis, "EVAL",
        "for i = 1, tonumber(ARGV[1]) do local q = 'queue' .. i "
        "redis.call('SADD', 'later:{default}:names', q) "
        "redis.call('ZADD', 'later:{default}:q:' .. q .. ':5', 1, 'j' .. i, 4e12, 'k' .. i) "
        "redis.call('HSET', 'later:{default}:stats', 'done:' .. q, i) end",
        "0", count, NULL));
}

/* How many calls of functions there were since RESETSTAT. */
static int calls_of_functions(void)
{
    static const char *const commands[] = {"cmdstat_fcall:calls=", "cmdstat_fcall_ro:calls="};
    struct reply *r = test_redis_call(&redis, "INFO", "commandstats", NULL);
    int n = 0;

    for (size_t i = 0; i < 2; i++) {
        const char *at = strstr(reply_str(r), commands[i]);

        n += at != NULL ? atoi(at + strlen(commands[i])) : 0;
    }
    reply_free(r);
    return n;
}

static void test_ten_thousand_queues(void **state)
{
    CLEANUP_FREE char *text = NULL;

    (void)state;
    test_redis_load(&redis);
    make_queues(MANY_QUEUES);
    reply_free(test_redis_call(&redis, "CONFIG", "RESETSTAT", NULL));
    text = scrape();
    /* None is about more than a hundred queues, and Redis is not held up. */
    assert_in_range(calls_of_functions(), MANY_QUEUES / 100, MANY_QUEUES / 10);
    assert_has(text, "laterd_jobs", "queue=\"queue1\",state=\"due\"", "1");
    assert_has(text, "laterd_jobs", "queue=\"queue10000\",state=\"scheduled\"", "1");
    assert_has(text, "laterd_finished_total", "queue=\"queue7777\",outcome=\"done\"", "7777");
    assert_int_equal(test_lines(metrics_path, "state=\"due\""), MANY_QUEUES);
}

/* ---- cmocka */

static int setup(void **state)
{
    CLEANUP_FREE char *later = mem_printf("%s/later", test_build_dir());

    (void)setenv("LATER", later, 1);
    if (fx_open(state) != 0)
        return -1;
    (void)setenv("DIR", dir, 1);
    (void)snprintf(metrics_path, sizeof(metrics_path), "%s/metrics", dir);
    return 0;
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, fx_close)

int main(void)
{
    const struct CMUnitTest tests[] = {T(test_jobs_by_state),      T(test_parked_jobs),
                                       T(test_what_ran),           T(test_hostile_fields),
                                       T(test_refused_together),   T(test_dashboard),
                                       T(test_ten_thousand_queues)};

    compile_grammar();
    cmocka_set_test_filter(getenv("LATER_ONLY")); /* a name, with * and ? */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
