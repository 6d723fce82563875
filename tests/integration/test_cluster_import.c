/*
 * Moving the queues of one server to a cluster, as doc/cluster.md describes it: jobs with every
 * option, and payloads of any bytes.
 */
#include "cluster_fixture.h"

#include <signal.h>

#define NS "moved"

static struct test_redis old;
static struct proc holder;

/* $O is later at the old server, $L at the cluster. */
static void run(const char *line, const char *says)
{
    CLEANUP_FREE char *whole =
        mem_printf("O=\"$LATER --redis $OLD --namespace " NS "\"; "
                   "L=\"$LATER --redis $BY --namespace " NS "\"; cd $DIR; %s",
                   line);

    test_says(whole, 0, says);
}

#define UNTIL(condition) "for i in $(seq 600); do " condition " && break; sleep 0.1; done; "

/* Each payload stands in $DIR/in, and goes with the key of that name. */
static void make_payloads(void)
{
    run("mkdir in out && cd in && printf 'a\\000b\\377\\r\\n' >binary && : >empty && "
        "head -c 300000 /dev/urandom >big && printf 'gr\\303\\274n {\"x\":\"\\\\n\"}' >text && "
        "cp text options && cp text gated && cp binary held && cp text batched",
        "");
}

/* While a daemon is there: dead ones, and one that is parked, since $DIR/go is not there yet. */
static void leave_dead_and_parked(void)
{
    test_handler(dir, "open", "cat >%s/out/$LATER_KEY.$LATER_ID; echo ran >>%s/ran", dir, dir);
    start_at(0, NS, old.url);
    assert_int_equal(test_sh("touch $DIR/said"), 0);
    test_sh_start(&holder, "$LATER --redis $OLD --namespace " NS " lock gate -- sh -c "
                           "'echo inside; while [ ! -e $DIR/go ]; do sleep 0.1; done'");
    assert_true(test_until_lines(d[0].log, "event=registered", 1, LONG_MS));
    run(UNTIL("grep -q inside said") "grep inside said", "inside");
    run("for k in binary big empty text; do "
        "$O add doomed --attempts 1 --key $k --priority 3 - <in/$k || exit 1; done; "
        "$O add open --key held --lock gate - <in/held",
        "");
    run(UNTIL("[ \"$($O export doomed --state dead | wc -l)\" = 4 ]") "$O stats", "doomed");
    run(UNTIL("$O ls open --state parked >/dev/null") "$O ls open --state parked", "lock:gate");
    assert_int_equal(test_laterd_stop(&d[0]), 0);
}

static void leave_waiting(void)
{
    run("for k in binary big empty text; do "
        "$O add open --key $k - <in/$k && $O add open --key later-$k --in 1h - <in/$k || exit 1; "
        "done",
        "");
    run("$O add open --key options --priority 2 --unique u1 --unique-for 2h --lock l1 "
        "--timeout 33s --attempts 7 --expire 9d --keep 3h --token t1 "
        "--trace 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01 "
        "--then next --on-dead grave - <in/options",
        "");
    run("$O limits set s1 semaphore 3 && $O limits set r1 rate 5/1m && "
        "$O add open --key gated --sem s1 --rate r1 - <in/gated",
        "");
    run("$O batch add all --then next && $O add open --key batched --batch all - <in/batched", "");
}

/* The loop of doc/cluster.md. It fails where one of its imports does. */
#define MOVE_BY(filter)                                                                            \
    "for q in $($O stats --json | grep -o '\"queue\":\"[^\"]*\"' | cut -d'\"' -f4); do "           \
    "$O export \"$q\" --state due,parked " filter " | $L import \"$q\" --once || s=$?; "           \
    "$O export \"$q\" --state dead " filter " | $L import \"$q\" --once --keep-dead || s=$?; "     \
    "done; (exit ${s:-0})"
#define MOVE MOVE_BY("")
#define NO_BATCH "sed 's/,\"batch\":\"[^\"]*\"//'" /* jq -c 'del(.batch)' */

/* All that a job is, but for its id; a parked one is due. */
#define JOBS(later, queue)                                                                         \
    later                                                                                          \
        " export " queue                                                                           \
        " --state due,parked,dead | sed -e 's/^{\"id\":\"[^\"]*\",//' -e 's/\"state\":\"parked\"/" \
        "\"state\":\"due\"/' -e 's/,\"gate\":\"[^\"]*\"//' | " NO_BATCH " | sort"

static void all_is_there_once(void)
{
    run(JOBS("$O", "open") " >old; " JOBS("$L", "open") " >new; diff old new && wc -l <new", "12");
    run(JOBS("$O", "doomed") " >old; " JOBS("$L", "doomed") " >new; diff old new && wc -l <new",
        "4");
}

static void run_all(void)
{
    test_handler(dir, "next", "cat >%s/out/next.$LATER_ID", dir);
    test_handler(dir, "doomed", "cat >%s/out/doomed-$LATER_KEY.$LATER_ID; echo ran >>%s/ran", dir,
                 dir);
    start(0, NS);
    run(UNTIL("[ \"$(wc -l <ran)\" -ge 8 ]") "$L retry doomed --all", "4");
    run(UNTIL("[ \"$(wc -l <ran)\" -ge 12 ]") UNTIL("ls out/next.* >/dev/null 2>&1")
            UNTIL("$L stats --json | grep -q '\"running\":0.*\"running\":0'") "$L stats",
        "open");
}

static void test_the_queues_of_one_server_go_to_a_cluster(void **state)
{
    (void)state;
    make_payloads();
    leave_dead_and_parked();
    leave_waiting();
    /* A job is not taken without its limits, nor without its batch; the same again goes on. */
    run(MOVE "; [ $? = 65 ]", "there is no semaphore 's1': later limits set defines it");
    run("$L limits set s1 semaphore 3 && $L limits set r1 rate 5/1m", "");
    run(MOVE "; [ $? = 66 ]", "there is no batch 'all': later batch add opens it");
    run(MOVE_BY("| " NO_BATCH), "jobs added");
    all_is_there_once();
    run(MOVE_BY("| " NO_BATCH), "0 jobs added");
    all_is_there_once();
    run("$L fsck", "clean");
    run_all();
    /* Each that was due ran once, and got its bytes; no other ran. */
    run("for k in binary big empty text options gated held batched; do cmp in/$k out/$k.* || exit "
        "1; done",
        "");
    run("for k in binary big empty text; do cmp in/$k out/doomed-$k.* || exit 1; done", "");
    run("ls out | wc -l", "13\n");
    run("$L stats open --json | grep -o '\"waiting\":4,'", "4");
    run("$L fsck", "clean");
    /* The old server has what it had. */
    run("$O export open --state due,parked | wc -l && $O fsck", "12\n");
}

static int open_both(void **state)
{
    int failed = open_cluster(state);

    test_redis_start(&old, NULL);
    assert_int_equal(setenv("OLD", old.url, 1), 0);
    return failed;
}

static int close_both(void **state)
{
    (void)test_sh("touch $DIR/go");
    proc_done(&holder);
    (void)stop_daemons(state);
    test_redis_stop(&old);
    return close_cluster(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_queues_of_one_server_go_to_a_cluster),
    };

    cmocka_set_test_filter(getenv("LATER_ONLY")); /* a name, with * and ? */
    return cmocka_run_group_tests(tests, open_both, close_both);
}
