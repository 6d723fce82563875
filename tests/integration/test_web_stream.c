/*
 * later-web with a real server: the live tail, and a Redis that hangs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "web_fixture.h"

#define TAILS 24 /* TAIL_MAX */
#define ASKERS 20

/* A connection that has ended is seen when a beat is written to it, each five seconds. */
static bool is_unfollowed(void *arg)
{
    (void)arg;
    pass(5);
    return publish("1 1 0") == 0;
}

static void test_the_tail_tells_what_happens(void **state)
{
    int fds[TAILS];

    (void)state;
    web_on_clock();
    start_web(NULL);
    for (size_t i = 0; i < TAILS; i++)
        fds[i] = open_tail();
    assert_int_equal(get("/api/v1/default/tail"), 503);
    assert_int_equal(publish("1 1 7\nno event"), 1);
    do_redis("FCALL", "later_add", "1", ROOT, "mail", "x");
    for (size_t i = 0; i < TAILS; i++) {
        buf_clear(&out);
        read_until(fds[i], "\"event\":\"added\"");
        assert_says(&out, "event: left\ndata: {\"n\":7}");
    }
    /* A stream that is read by nobody ends with its connection, and the subscription with the last.
     */
    for (size_t i = 0; i < TAILS; i++)
        (void)close(fds[i]);
    assert_true(test_until(is_unfollowed, NULL, LONG_MS));
    fds[0] = open_tail();
    proc_signal(&web, SIGTERM);
    assert_int_equal(proc_wait(&web, LONG_MS), 0);
    assert_int_equal(recv(fds[0], (char[1]){0}, 1, 0) >= 0, 1);
    (void)close(fds[0]);
}

/* ---- who stops to read */

#define PAGES 100
#define EVENTS 60 /* of a page; each has about a kilobyte */

/* Publish a page of events, the last of which says `end`, and read it. */
static void flood(int fd, const char *end)
{
    CLEANUP_BUF struct buf page = BUF_INIT;

    buf_puts(&page, "1 1 0");
    for (int i = 0; i < EVENTS; i++)
        buf_printf(&page, "\nadded j00000000001 mail - - - - %0900d %s", i,
                   i == EVENTS - 1 ? end : "-");
    assert_int_equal(publish(buf_str(&page)), 1);
    buf_clear(&out);
    read_until(fd, end);
}

/* How many events are in `out`. */
static int64_t events(void)
{
    int64_t n = 0;

    for (const char *at = buf_str(&out); (at = strstr(at, "\"event\":\"added\"")) != NULL; at++)
        n++;
    return n;
}

/* How many events `out` says that he lacks, once or more often. */
static int64_t lacking(void)
{
    static const char left[] = "event: left\ndata: {\"n\":";
    int64_t n = 0;

    for (const char *at = buf_str(&out); (at = strstr(at, left)) != NULL; at++)
        n += atoll(at + strlen(left));
    return n;
}

static int64_t published; /* by is_told */

/* He reads again what there is, and one more event comes. Is he told that he lacks some? */
static bool is_told(void *arg)
{
    int *fd = arg;
    char piece[4096];
    ssize_t n;

    while ((n = recv(*fd, piece, sizeof(piece), MSG_DONTWAIT)) > 0)
        buf_add(&out, piece, (size_t)n);
    if (strstr(buf_str(&out), "event: left") != NULL)
        return true;
    (void)publish("1 1 0\nadded j00000000001 mail - - - - again");
    published++;
    return false;
}

/* How many bytes come until the end. */
static size_t rest(int fd)
{
    char piece[4096];
    size_t all = 0;
    ssize_t n;

    while ((n = recv(fd, piece, sizeof(piece), 0)) > 0)
        all += (size_t)n;
    assert_int_equal(n, 0);
    (void)close(fd);
    return all;
}

/*
 * One reads, the others do not: for each of them 256 KiB wait and no more. Who reads again in time
 * is told how many events he lacks; the others are given up after ten seconds.
 */
static void test_who_does_not_read_a_stream_is_left_behind(void **state)
{
    int fds[TAILS], reader;
    size_t longest = 0;
    int64_t all;
    long before, more;

    (void)state;
    web_at_socket();
    web_on_clock();
    start_web(NULL);
    for (size_t i = 0; i < TAILS; i++)
        fds[i] = open_tail();
    reader = fds[TAILS - 1];
    flood(reader, "first");
    before = resident();
    for (int i = 1; i < PAGES; i++) {
        CLEANUP_FREE char *end = mem_printf("end-%d-", i);

        flood(reader, end);
    }
    more = resident() - before;

    published = (int64_t)PAGES * EVENTS;
    buf_clear(&out);
    assert_true(test_until(is_told, &fds[0], LONG_MS));
    (void)publish("1 1 0\nadded j00000000001 mail - - - - last");
    read_until(fds[0], "last");
    all = published + 1;
    assert_int_equal(events() + lacking(), all);
    assert_true(lacking() > all / 2);

    for (int i = 0; i < 2; i++) { /* twelve seconds, in which two readers read */
        pass(6);
        flood(reader, "then");
        buf_clear(&out);
        read_until(fds[0], "then");
    }
    for (size_t i = 1; i < TAILS - 1; i++) {
        size_t n = rest(fds[i]);

        longest = n > longest ? n : longest;
    }
    print_message("figure W8: %d of %d do not read: of 6 MB each got %zu KiB, %ld KiB more in "
                  "memory\n",
                  TAILS - 1, TAILS, longest / 1024, more);
    assert_true(longest < 1048576);
    assert_true(test_is_sanitized() || more < TAILS * 2 * 256 + 4096);
    fds[1] = open_tail(); /* their places are free */
    (void)close(fds[0]);
    (void)close(fds[1]);
    (void)close(reader);
}

/* ---- a Redis that hangs */

/* Whoever wants the tail, or the health, waits for Redis: the others do not wait for each of them.
 */
static void test_a_redis_that_hangs_holds_up_nobody_for_long(void **state)
{
    static const char *const wanted[] = {"tail", "health"};

    (void)state;
    start_web(NULL);
    assert_int_equal(get("/api/v1/default/queues"), 200);
    test_redis_kill(&redis, SIGSTOP);
    for (size_t k = 0; k < sizeof(wanted) / sizeof(wanted[0]); k++) {
        struct mono begin = mono_now();
        int fds[ASKERS];

        for (int i = 0; i < ASKERS; i++) {
            CLEANUP_FREE char *path = mem_printf("/api/v1/default/%s?%d", wanted[k], i);

            fds[i] = dial();
            send_get(fds[i], token, path);
        }
        assert_int_equal(get("/"), 200);
        for (int i = 0; i < ASKERS; i++)
            assert_true(read_answer(fds[i]) > 0);
        /* All of them together wait for about 4 s; if each did by himself, it would be 40 s. */
        assert_true(test_ms_since(begin) < 20000);
    }
    test_redis_kill(&redis, SIGCONT);
    assert_true(test_until(is_back, NULL, LONG_MS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WEB_TEST(test_the_tail_tells_what_happens),
        WEB_TEST(test_who_does_not_read_a_stream_is_left_behind),
        WEB_TEST(test_a_redis_that_hangs_holds_up_nobody_for_long),
    };

    return cmocka_run_group_tests_name("web_stream", tests, start_all, stop_all);
}
