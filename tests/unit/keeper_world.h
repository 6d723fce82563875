/*
 * For tests of the keeper: a world of effects that are written down, answers to give, virtual time.
 */
#ifndef LATER_TESTS_UNIT_KEEPER_WORLD_H
#define LATER_TESTS_UNIT_KEEPER_WORLD_H

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cli/hold/keeper_answers.h"

#define EPOCH 1000
#define PEER 17

/* The effects, a letter each: R register, D ask for the limit, E beat, N enter and wait, n enter
 * and do not wait, L ask for the beats, C clear, P reap, A ask whether it is done, M note it done,
 * V leave, S start, / relink. The command gets a signal: t TERM, k KILL, 0 another. ! over. */
static struct {
    char log[256];
    size_t n;
    bool admits, must_end, cannot_run;
    int64_t fence;
    struct mono armed;
    enum keeper_end end;
    bool is_done, is_gone;
    char told[400];
    int times_told;
    int64_t redis_later_ms; /* than our clock */
} world;

static struct keeper *keeper;
static struct mono now;

static inline void put(char c)
{
    assert_in_range(world.n, 0, sizeof(world.log) - 2);
    world.log[world.n++] = c;
    world.log[world.n] = '\0';
}

static inline int op_reg(void *ctx, const struct store_register *req)
{
    (void)ctx;
    (void)req;
    put('R');
    return 0;
}

static inline int op_ask_limit(void *ctx)
{
    (void)ctx;
    put('D');
    return 0;
}

static inline int op_beat(void *ctx, int64_t epoch)
{
    (void)ctx;
    assert_int_equal(epoch, EPOCH);
    put('E');
    return 0;
}

static inline int op_enter(void *ctx, int64_t epoch, bool is_waiting)
{
    (void)ctx;
    assert_int_equal(epoch, EPOCH);
    put(is_waiting ? 'N' : 'n');
    return 0;
}

static inline int op_beats(void *ctx)
{
    (void)ctx;
    put('L');
    return 0;
}

static inline int op_clear(void *ctx, int64_t victim)
{
    (void)ctx;
    assert_int_equal(victim, PEER);
    put('C');
    return 0;
}

static inline int op_reap(void *ctx, int64_t epoch, int64_t victim, const char *counter)
{
    (void)ctx;
    assert_int_equal(epoch, EPOCH);
    assert_int_equal(victim, PEER);
    assert_string_equal(counter, "5");
    put('P');
    return 0;
}

static inline int op_ask_done(void *ctx)
{
    (void)ctx;
    put('A');
    return 0;
}

static inline int op_tell_done(void *ctx)
{
    (void)ctx;
    put('M');
    return 0;
}

static inline int op_leave(void *ctx, int64_t epoch)
{
    (void)ctx;
    assert_int_equal(epoch, EPOCH);
    put('V');
    return 0;
}

static inline void op_relink(void *ctx, enum error_class class, const char *text)
{
    (void)ctx;
    put('/');
    keeper_link_down(keeper, now, class, text);
}

static inline bool op_is_gone(void *ctx, const struct store_peer *peer)
{
    (void)ctx;
    (void)peer;
    return world.is_gone;
}

static inline bool op_admits(void *ctx, int64_t fence)
{
    (void)ctx;
    world.fence = fence;
    return world.admits;
}

static inline int op_start(void *ctx, int64_t epoch, int64_t fence, bool must_end)
{
    (void)ctx;
    assert_int_equal(epoch, EPOCH);
    world.fence = fence;
    world.must_end = must_end;
    put('S');
    return world.cannot_run ? -1 : 0;
}

static inline void op_kill(void *ctx, int sig)
{
    (void)ctx;
    put(sig == SIGTERM ? 't' : sig == SIGKILL ? 'k' : '0');
}

static inline void op_tell(void *ctx, const char *text)
{
    (void)ctx;
    world.times_told++;
    (void)snprintf(world.told, sizeof(world.told), "%s", text);
}

static inline void op_fail(void *ctx, enum error_class class, const char *text)
{
    (void)ctx;
    (void)class;
    (void)snprintf(world.told, sizeof(world.told), "%s", text);
}

static inline void op_arm(void *ctx, struct mono at)
{
    (void)ctx;
    world.armed = at;
}

static inline void op_over(void *ctx, enum keeper_end end)
{
    (void)ctx;
    assert_false(world.is_done);
    world.is_done = true;
    world.end = end;
    put('!');
}

static const struct keeper_ops ops = {op_reg,    op_ask_limit, op_beat,     op_enter,     op_beats,
                                      op_clear,  op_reap,      op_ask_done, op_tell_done, op_leave,
                                      op_relink, op_is_gone,   op_admits,   op_start,     op_kill,
                                      op_tell,   op_fail,      op_arm,      op_over};

static inline void begin_with(const struct keeper_conf *conf)
{
    memset(&world, 0, sizeof(world));
    world.admits = true;
    world.redis_later_ms = INT64_C(1795000000000);
    now = (struct mono){1000000};
    keeper = keeper_new(conf, &ops, NULL, now);
}

static inline void begin(bool is_sem, int64_t wait_ms, int64_t ttl_ms)
{
    begin_with(&(struct keeper_conf){.is_sem = is_sem, .wait_ms = wait_ms, .ttl_ms = ttl_ms});
}

static inline int done(void **state)
{
    (void)state;
    keeper_free(keeper);
    keeper = NULL;
    return 0;
}

/* Exactly these effects came out since the last call. */
static inline void out(const char *expected)
{
    assert_string_equal(world.log, expected);
    world.n = 0;
    world.log[0] = '\0';
}

static inline int64_t redis_ms(void)
{
    return now.us / 1000 + world.redis_later_ms;
}

static inline void registered_with(const struct store_peer *peers, size_t n)
{
    keeper_on_registered(
        keeper, now,
        &(struct store_register_reply){
            .now_us = redis_ms() * 1000, .epoch = EPOCH, .link = 1, .peers = peers, .npeers = n});
}

static inline void registered(void)
{
    registered_with(NULL, 0);
}

static inline void begin_once(void)
{
    begin_with(&(struct keeper_conf){.is_once = true});
    keeper_link_up(keeper, now);
    registered();
}

static inline void entered(bool is_granted)
{
    keeper_on_entered(keeper, now, &(struct gate_enter_reply){STORE_OK, is_granted, 77});
}

static inline void beaten_with(enum store_status status, const struct store_peer *peers, size_t n)
{
    keeper_on_beat(keeper, now,
                   &(struct store_beat_reply){.status = status, .peers = peers, .npeers = n});
}

static inline void beaten(enum store_status status)
{
    beaten_with(status, NULL, 0);
}

/* Answer: one worker has just beaten, the other ago_ms before, by Redis' present clock. */
static inline void heard(int64_t ago_ms)
{
    const int64_t beats_ms[] = {redis_ms(), redis_ms() - ago_ms};

    keeper_on_beats(keeper, now, &(struct gate_beats_reply){redis_ms(), beats_ms, 2});
}

/* Let the timer fire until an effect comes out. */
static inline void until_out(void)
{
    for (int i = 0; i < 100 && world.n == 0; i++) {
        assert_true(world.armed.us != INT64_MAX);
        if (mono_before(now, world.armed))
            now = world.armed;
        keeper_on_timer(keeper, now);
    }
}

static inline void come_in(bool is_sem, int64_t ttl_ms)
{
    begin(is_sem, -1, ttl_ms);
    keeper_link_up(keeper, now);
    registered();
    entered(true);
    out("RNS");
}

static inline int64_t gone_ms(struct mono since)
{
    return mono_until_us(since, now) / 1000;
}

#endif
