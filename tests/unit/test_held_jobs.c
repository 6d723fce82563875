/* The jobs that a worker holds: what is sent when, what is sent again, and what the counts say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "sched/held_jobs.h"

#define NOW ((struct mono){1000000})

static struct held_job *add(struct held_jobs *l, unsigned n, int64_t start)
{
    struct job job = {
        .queue = "q", .start = start, .payload = mem_strdup("payload"), .payload_len = 7};

    (void)snprintf(job.id, sizeof(job.id), "j%011u", n);
    return held_add(l, &job);
}

static struct held_job *run(struct held_jobs *l, struct held_job *h)
{
    held_move(l, h, HELD_AWAITS_PLACE);
    held_move(l, h, HELD_RUNNING);
    return h;
}

static struct held_job *lose(struct held_jobs *l, struct held_job *h)
{
    held_move(l, run(l, h), HELD_LOST);
    return h;
}

static void end(struct held_jobs *l, struct held_job *h, enum store_verb verb)
{
    struct verdict v = {.verb = verb, .amount = 5, .code = 3, .reason = "why"};

    held_end(l, h, &v, &(struct verdict_data){"last\0x", 6, NULL});
}

static void test_a_life(void **state)
{
    struct held_jobs l = {0};
    struct store_result out[4];
    struct held_job *h = add(&l, 1, 7);

    (void)state;
    assert_int_equal(h->state, HELD_CLAIMED);
    assert_null(held_in_pool(&l, "j00000000001"));
    run(&l, h);
    assert_int_equal(l.n, 1);
    assert_int_equal(l.unended, 1);
    assert_ptr_equal(held_find(&l, "j00000000001"), h);
    assert_ptr_equal(held_in_pool(&l, "j00000000001"), h);
    assert_null(held_find(&l, "j00000000002"));
    assert_false(held_has_results(&l, NOW));
    assert_int_equal(held_collect(&l, NOW, out, 4), 0);

    end(&l, h, STORE_RETRY);
    assert_int_equal(l.unended, 0);
    assert_null(h->job.payload);
    assert_null(held_in_pool(&l, "j00000000001"));
    assert_true(held_has_results(&l, NOW));
    assert_int_equal(held_collect(&l, NOW, out, 4), 1);
    assert_string_equal(out[0].id, "j00000000001");
    assert_string_equal(out[0].queue, "q");
    assert_int_equal(out[0].start, 7);
    assert_int_equal(out[0].verb, STORE_RETRY);
    assert_int_equal(out[0].amount, 5);
    assert_int_equal(out[0].code, 3);
    assert_string_equal(out[0].text, "why");
    assert_int_equal(out[0].output_len, 6);
    assert_memory_equal(out[0].output, "last\0x", 6);

    /* A result under way is not sent twice. After a failed sync it is sent again. */
    assert_int_equal(h->state, HELD_SENT);
    assert_false(held_has_results(&l, NOW));
    assert_int_equal(held_collect(&l, NOW, out, 4), 0);
    held_unsend(&l);
    assert_int_equal(held_collect(&l, NOW, out, 4), 1);
    held_remove(&l, h);
    assert_int_equal(l.n, 0);
    assert_int_equal(l.unended, 0);
    assert_null(l.first);
}

static void test_collect_is_bounded_and_ends_go_first(void **state)
{
    struct held_jobs l = {0};
    struct store_result out[8];
    size_t got;

    (void)state;
    for (unsigned i = 0; i < 10; i++) {
        struct held_job *h = add(&l, i, 1);

        if (i % 2 == 0) {
            end(&l, h, STORE_DONE);
        } else {
            h->has_progress = true;
            (void)snprintf(h->progress, sizeof(h->progress), "at %u", i);
        }
    }
    got = held_collect(&l, NOW, out, 8);
    assert_int_equal(got, 8);
    for (size_t i = 0; i < got; i++)
        assert_int_equal(out[i].verb, i < 5 ? STORE_DONE : STORE_PROGRESS);
    assert_int_equal(strncmp(out[7].text, "at ", 3), 0);
    assert_int_equal(held_collect(&l, NOW, out, 8), 2);
    assert_int_equal(held_collect(&l, NOW, out, 8), 0);
    /* Progress alone is no reason for a sync. The progress of a LOST job is not sent. */
    l.first->has_progress = true;
    assert_false(held_has_results(&l, NOW));
    lose(&l, l.first);
    assert_int_equal(held_collect(&l, NOW, out, 8), 0);
    held_clear(&l);
    assert_int_equal(l.n, 0);
    assert_int_equal(l.unended, 0);
}

/* A checkpoint goes before the end of its attempt, at most twice a second, and again after a failed
 * sync. */
static void test_checkpoints(void **state)
{
    struct held_jobs l = {0};
    struct store_result out[8];
    struct held_job *h = run(&l, add(&l, 1, 7));
    struct mono later = mono_add_ms(NOW, HELD_CHECKPOINT_MS);

    (void)state;
    assert_int_equal(held_checkpoint_at(&l).us, MONO_NEVER.us);
    held_note_checkpoint(&l, h, "one");
    held_note_checkpoint(&l, h, "two");
    assert_false(mono_before(NOW, held_checkpoint_at(&l)));
    assert_int_equal(held_collect(&l, NOW, out, 8), 1);
    assert_int_equal(out[0].verb, STORE_CHECKPOINT);
    assert_string_equal(out[0].output, "two");
    assert_int_equal(out[0].start, 7);
    assert_int_equal(held_collect(&l, NOW, out, 8), 0);
    held_note_checkpoint(&l, h, "three");
    assert_int_equal(held_collect(&l, NOW, out, 8), 0);
    assert_int_equal(held_checkpoint_at(&l).us, later.us);
    held_unsend(&l); /* whether the first one has arrived is unknown; the last one counts */
    assert_int_equal(held_collect(&l, later, out, 8), 1);
    assert_string_equal(out[0].output, "three");
    /* The end of an attempt does not wait for the half second, but for its checkpoint. */
    held_note_checkpoint(&l, h, "four");
    end(&l, h, STORE_RETRY);
    assert_int_equal(held_collect(&l, later, out, 8), 2);
    assert_string_equal(out[0].output, "four");
    assert_int_equal(out[1].verb, STORE_RETRY);
    held_unsend(&l);
    assert_int_equal(held_collect(&l, later, out, 8), 2);
    held_resend_checkpoint(&l, h);
    held_leave(&l, h);
    assert_int_equal(held_collect(&l, later, out, 8), 2);
    held_remove(&l, h);
    /* No attempt follows a job that is done, unless its children are refused. */
    h = run(&l, add(&l, 2, 1));
    held_note_checkpoint(&l, h, "done");
    end(&l, h, STORE_DONE);
    assert_int_equal(held_collect(&l, NOW, out, 8), 1);
    assert_int_equal(out[0].verb, STORE_DONE);
    held_children_refused(&l, h, &(struct verdict){.verb = STORE_RETRY, .reason = "no"});
    assert_int_equal(held_collect(&l, NOW, out, 8), 2);
    assert_string_equal(out[0].output, "done");
    /* Nor does a job that is lost tell anything; and a sync has room for ends, too. */
    held_clear(&l);
    h = run(&l, add(&l, 3, 1));
    held_note_checkpoint(&l, h, "lost");
    held_move(&l, h, HELD_LOST);
    assert_int_equal(held_collect(&l, NOW, out, 8), 0);
    for (unsigned i = 10; i < 20; i++)
        held_note_checkpoint(&l, run(&l, add(&l, i, 1)), "x");
    end(&l, add(&l, 20, 1), STORE_DONE);
    assert_int_equal(held_collect(&l, NOW, out, 8), 5);
    assert_int_equal(out[4].verb, STORE_DONE);
    held_clear(&l);
    assert_int_equal(l.checkpoints, 0);
}

/* The result of a job with a next one is told as such; its end is not plain. */
static void test_result_goes_on(void **state)
{
    struct held_jobs l = {0};
    struct store_result out[1];
    struct held_job *h = add(&l, 1, 1);
    struct verdict v = {.verb = STORE_DONE, .reason = "ok", .has_result = true};

    (void)state;
    h->is_small = true;
    held_end(&l, h, &v, &(struct verdict_data){"r", 1, NULL});
    assert_int_equal(held_collect(&l, NOW, out, 1), 1);
    assert_int_equal(out[0].verb, STORE_RESULT);
    assert_false(out[0].is_plain);
    assert_memory_equal(out[0].output, "r", 1);
    held_clear(&l);
}

/* A sync carries the children of one job, or of several that have few. */
static void test_children_of_a_sync(void **state)
{
    static const char *const words[] = {"q", "payload"};
    static const size_t lens[] = {1, 7};
    struct held_jobs l = {0};
    struct store_result out[4];
    struct children c = {0};
    struct verdict v = {.verb = STORE_DONE, .reason = "ok"}, no = {.verb = STORE_RETRY};
    struct held_job *first = NULL;

    (void)state;
    for (int i = 0; i < 501; i++)
        children_add(&c, words, lens, 2);
    for (unsigned i = 0; i < 3; i++) {
        first = add(&l, i, 1);
        held_end(&l, first, &v, &(struct verdict_data){"", 0, &c});
    }
    children_done(&c);
    for (int i = 3; i > 0; i--) {
        assert_int_equal(held_collect(&l, NOW, out, 4), 1);
        assert_false(out[0].is_plain);
        assert_int_equal(out[0].children->n, 501);
    }
    held_children_refused(&l, first, &no);
    assert_int_equal(held_collect(&l, NOW, out, 4), 1);
    assert_int_equal(out[0].verb, STORE_RETRY);
    assert_null(out[0].children);
    held_clear(&l);
}

/* End it well, with n bytes of output. */
static struct held_job *end_well(struct held_jobs *l, struct held_job *h, size_t n)
{
    static const char output[1048576];
    struct verdict v = {.verb = STORE_DONE, .reason = "ok"};

    h->is_small = true;
    held_end(l, run(l, h), &v, &(struct verdict_data){output, n, NULL});
    return h;
}

/* Results that a sync leaves go with the next one, before all that came meanwhile, and none waits
 * for ever behind those of newer jobs. */
static void test_left_results_go_first(void **state)
{
    struct held_jobs l = {0};
    struct store_result out[8];
    struct held_job *h;

    (void)state;
    for (unsigned i = 1; i <= 3; i++)
        end_well(&l, add(&l, i, 1), 0);
    assert_int_equal(held_collect(&l, NOW, out, 8), 3);
    assert_true(out[0].is_plain);
    for (unsigned i = 0; i < 3; i++)
        held_leave(&l, held_find(&l, out[i].id));
    for (unsigned i = 4; i < 20; i += 2) { /* one is taken, two more have ended */
        char oldest[16];

        end_well(&l, add(&l, i, 1), 0);
        end_well(&l, add(&l, i + 1, 1), 1);
        (void)snprintf(oldest, sizeof(oldest), "j%011u", i / 2 - 1);
        assert_in_range(held_collect(&l, NOW, out, 3), 1, 3);
        assert_string_equal(out[0].id, oldest);
        assert_false(out[0].is_plain); /* else Redis would look at it behind the others */
        for (h = l.first; h != NULL; h = h->next) {
            if (h->state == HELD_SENT || !h->is_left) {
                if (h->state != HELD_SENT)
                    held_move(&l, h, HELD_SENT);
                held_leave(&l, h);
            }
        }
        held_move(&l, l.last, HELD_SENT);
        held_remove(&l, l.last);
    }
    held_clear(&l);
    assert_int_equal(l.left, 0);
    assert_null(l.last);

    end_well(&l, add(&l, 1, 1), 1048576); /* fits in no sync beside another one */
    end_well(&l, add(&l, 2, 1), 1);
    assert_int_equal(held_collect(&l, NOW, out, 8), 1);
    assert_string_equal(out[0].id, "j00000000002");
    end_well(&l, add(&l, 3, 1), 1);
    assert_int_equal(held_collect(&l, NOW, out, 8), 1);
    assert_string_equal(out[0].id, "j00000000001");
    assert_int_equal(l.left, 2);
    held_put_off(&l, held_find(&l, "j00000000001"), mono_add_ms(NOW, 1)); /* it takes no place */
    assert_int_equal(l.left, 1);
    held_clear(&l);
}

static void test_not_before(void **state)
{
    struct held_jobs l = {0};
    struct store_result out[1];
    struct held_job *h = add(&l, 1, 1);

    (void)state;
    end(&l, h, STORE_DONE);
    h->not_before = mono_add_ms(NOW, 5);
    assert_false(held_has_results(&l, NOW));
    assert_int_equal(held_collect(&l, NOW, out, 1), 0);
    assert_true(held_has_results(&l, mono_add_ms(NOW, 5)));
    assert_int_equal(held_collect(&l, mono_add_ms(NOW, 5), out, 1), 1);
    held_clear(&l);
}

static void test_names(void **state)
{
    struct held_jobs l = {0};
    struct store_held *names;

    (void)state;
    assert_int_equal(held_names(&l, &names), 0);
    free(names);
    held_move(&l, add(&l, 1, 11), HELD_AWAITS_PLACE);
    add(&l, 2, 12);
    end(&l, add(&l, 3, 13), STORE_DONE);
    lose(&l, add(&l, 4, 14));
    add(&l, 5, 15)->has_no_record = true;
    assert_int_equal(held_names(&l, &names), 3);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(names[i].start, 13 - (int64_t)i);
    free(names);
    assert_int_equal(l.unended, 4);
    held_clear(&l);
}

/* A LOST job is claimed again: both entries have the same id while the old run still ends here. */
static void test_same_id_twice(void **state)
{
    struct held_jobs l = {0};
    struct held_job *old = add(&l, 1, 7), *new;

    (void)state;
    lose(&l, old);
    assert_null(held_find(&l, "j00000000001"));
    new = add(&l, 1, 8);
    end(&l, new, STORE_RELEASE);
    assert_ptr_equal(held_find(&l, "j00000000001"), new);
    assert_ptr_equal(held_in_pool(&l, "j00000000001"), old);
    held_remove(&l, old);
    assert_int_equal(l.n, 1);
    assert_int_equal(l.unended, 0);
    held_clear(&l);
}

static void test_remove_anywhere(void **state)
{
    (void)state;
    for (unsigned gone = 0; gone < 3; gone++) {
        struct held_jobs l = {0};
        struct held_job *h[3] = {add(&l, 0, 1), add(&l, 1, 1), add(&l, 2, 1)};

        held_remove(&l, h[gone]);
        for (unsigned i = 0; i < 3; i++) {
            char id[JOB_ID_LEN + 1];

            (void)snprintf(id, sizeof(id), "j%011u", i);
            assert_int_equal(held_find(&l, id) != NULL, i != gone);
        }
        assert_int_equal(l.unended, 2);
        held_clear(&l);
    }
}

/* The counts follow every move. A job that leaves AWAITS_PLACE leaves its neighbours linked. */
static void test_counts_follow_the_states(void **state)
{
    static const enum held_state ways[] = {HELD_FETCHING, HELD_AHEAD, HELD_AWAITS_BEAT,
                                           HELD_RUNNING, HELD_ENDED};

    (void)state;
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        struct held_jobs l = {0};
        struct held_job *h[3] = {add(&l, 0, 1), add(&l, 1, 1), add(&l, 2, 1)};

        for (size_t k = 0; k < 3; k++)
            held_move(&l, h[k], HELD_AWAITS_PLACE);
        assert_int_equal(l.nawaiting, 3);
        held_move(&l, h[1], ways[i]);
        assert_int_equal(l.nawaiting, 2);
        assert_ptr_equal(l.awaiting, h[0]);
        assert_ptr_equal(h[0]->awaiting_after, h[2]);
        assert_ptr_equal(l.awaiting_last, h[2]);
        assert_int_equal(l.unended, ways[i] == HELD_ENDED ? 2 : 3);
        assert_int_equal(l.ended, ways[i] == HELD_ENDED);
        held_remove(&l, h[0]);
        assert_ptr_equal(l.awaiting, h[2]);
        held_clear(&l);
        assert_int_equal(l.nawaiting + l.unended + l.ended + l.n, 0);
        assert_null(l.awaiting_last);
    }
}

/* A job that runs alone is counted as solo until it ends, whichever way it ends. */
static void test_solos(void **state)
{
    struct held_jobs l = {0};
    struct held_job *a = add(&l, 1, 1), *b = add(&l, 2, 1), *c = add(&l, 3, 1);

    (void)state;
    assert_int_equal(l.solos, 0);
    held_set_solo(&l, a);
    held_set_solo(&l, b);
    held_move(&l, b, HELD_AWAITS_PLACE);
    assert_int_equal(l.solos, 2);
    end(&l, c, STORE_DONE);
    held_remove(&l, c);
    assert_int_equal(l.solos, 2);
    end(&l, a, STORE_DONE);
    assert_int_equal(l.solos, 1);
    held_remove(&l, a);
    assert_int_equal(l.solos, 1);
    held_remove(&l, b);
    assert_int_equal(l.solos, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_life),
        cmocka_unit_test(test_collect_is_bounded_and_ends_go_first),
        cmocka_unit_test(test_checkpoints),
        cmocka_unit_test(test_result_goes_on),
        cmocka_unit_test(test_children_of_a_sync),
        cmocka_unit_test(test_left_results_go_first),
        cmocka_unit_test(test_not_before),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_same_id_twice),
        cmocka_unit_test(test_remove_anywhere),
        cmocka_unit_test(test_counts_follow_the_states),
        cmocka_unit_test(test_solos),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
