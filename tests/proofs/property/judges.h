/*
 * Judges of a call that is refused: nothing has changed, and each job is in exactly one set.
 */
#ifndef LATER_TESTS_PROPERTY_JUDGES_H
#define LATER_TESTS_PROPERTY_JUDGES_H

#include "../../lua/fixture.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* ---- an empty server with its first settings */

static inline int fx_calm(void **state)
{
    (void)redis("REPLICAOF NO ONE");
    (void)redis("CONFIG SET maxmemory 0 min-replicas-to-write 0");
    return fx_clear(state);
}

#define CALM_TEST(f) cmocka_unit_test_setup_teardown(f, fx_calm, fx_forget)

/*
 * One hash of every key, its content, its encoding and when it expires. Contents without an order
 * in Redis are sorted; DUMP covers the rest.
 */
static const char FINGERPRINT[] =
    "local all = {}\n"
    "for _, key in ipairs(redis.call('KEYS', '*')) do\n"
    "  local kind, content = redis.call('TYPE', key).ok, nil\n"
    "  if kind == 'hash' or kind == 'set' then\n"
    "    local raw = redis.call(kind == 'hash' and 'HGETALL' or 'SMEMBERS', key)\n"
    "    local rows = {}\n"
    "    for i = 1, #raw, kind == 'hash' and 2 or 1 do\n"
    "      rows[#rows + 1] = redis.sha1hex(raw[i]) .. (kind == 'hash' and redis.sha1hex(raw[i + "
    "1]) "
    "or '')\n"
    "    end\n"
    "    table.sort(rows)\n"
    "    content = table.concat(rows) .. redis.call('OBJECT', 'ENCODING', key)\n"
    "  else\n"
    "    content = redis.call('DUMP', key)\n"
    "  end\n"
    "  all[#all + 1] = redis.sha1hex(key .. kind .. content ..\n"
    "                                string.format('%.0f', redis.call('PEXPIRETIME', key)))\n"
    "end\n"
    "table.sort(all)\n"
    "return redis.sha1hex(table.concat(all))";

static inline const char *fingerprint(void)
{
    static char prints[2][48];
    static int turn;
    const char *argv[] = {"EVAL_RO", FINGERPRINT, "0"};

    turn = !turn;
    (void)snprintf(prints[turn], sizeof(prints[0]), "%s", send_args(3, argv, NULL));
    assert_int_equal(strlen(prints[turn]), 40);
    return prints[turn];
}

/*
 * I8: every record is in exactly one set, everything in a set has a record, what runs has been
 * started, every large payload has a record and the reverse, and every key is ours.
 */
static const char ONE_SET[] =
    "local root, seen, bad = 'later:{t}:', {}, {}\n"
    "local alone = {jobs = 1, running = 1, workers = 1, tries = 1, errors = 1, failures = 1, "
    "results = 1,\n"
    "  heads = 1, names = 1, prio = 1, paused = 1, clock = 1, config = 1, stats = 1, cancel = 1,\n"
    "  progress = 1, await = 1, notes = 1, unserved = 1, parked = 1, holds = 1, timers = 1,\n"
    "  limits = 1, queues = 1, batches = 1, series = 1, seen = 1, index = 1, bulks = 1,\n"
    "  resume = 1}\n"
    "local more = {due = 1, q = 1, solo = 1, big = 1, worker = 1, dead = 1, done = 1, token = 1,\n"
    "  parked = 1, granted = 1, aside = 1, line = 1, wait = 1, lock = 1, sem = 1, rate = 1, uniq = "
    "1,\n  members = 1, batch = 1, bulk = 1, m = 1, h = 1, total = 1, keys = 1, top = 1,\n  seen = "
    "1, index = 1, steps = 1}\n"
    "local function say(what) bad[#bad + 1] = what end\n"
    "for _, key in ipairs(redis.call('KEYS', '*')) do\n"
    "  local name = string.sub(key, 1, #root) == root and string.sub(key, #root + 1) or '?'\n"
    "  local first = string.match(name, '^(%a+):.')\n"
    "  if not alone[name] and not more[first or ''] then\n"
    "    say('stray ' .. key)\n"
    "  end\n"
    "  if name == 'running' or first == 'q' or first == 'solo' or first == 'dead' or first == "
    "'done' or first == 'parked' then\n"
    "    for _, id in ipairs(redis.call('ZRANGE', key, 0, -1)) do\n"
    "      if seen[id] then say(id .. ' in ' .. seen[id] .. ' and ' .. name) end\n"
    "      seen[id] = name\n"
    "      if redis.call('HEXISTS', root .. 'jobs', id) == 0 then say(id .. ' has no record') end\n"
    "      if name == 'running' and redis.call('HEXISTS', root .. 'tries', id) == 0 then\n"
    "        say(id .. ' runs and never started')\n"
    "      end\n"
    "    end\n"
    "  elseif first == 'big' and redis.call('HEXISTS', root .. 'jobs', string.sub(name, 5)) == 0 "
    "then\n"
    "    say('payload without record ' .. name)\n"
    "  end\n"
    "end\n"
    "local all = redis.call('HGETALL', root .. 'jobs')\n"
    "for i = 1, #all, 2 do\n"
    "  if not seen[all[i]] then say(all[i] .. ' is nowhere') end\n"
    "  if string.sub(all[i + 1], 1, 1) == '+' and string.sub(seen[all[i]] or '', 1, 5) ~= 'dead:' "
    "and\n"
    "     redis.call('EXISTS', root .. 'big:' .. all[i]) == 0 then say(all[i] .. ' lost its "
    "payload') end\n"
    "end\n"
    "return table.concat(bad, ', ')";

static inline void assert_one_set(const char *after)
{
    const char *argv[] = {"EVAL_RO", ONE_SET, "0"};
    const char *bad = send_args(3, argv, NULL);

    if (bad[0] != '\0')
        fail_msg("after %.300s: %s", after, bad);
}

static inline bool starts(const char *s, const char *with)
{
    return strncmp(s, with, strlen(with)) == 0;
}

#endif
