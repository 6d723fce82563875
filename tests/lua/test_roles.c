/*
 * What each role of etc/users.acl can do. Every function of the library is called as each role and
 * as the default user, in the same namespace at the same instant (town.h). If the call is the
 * role's work, the reply, every key and what is published are the same. If it is not, the call may
 * be refused. An error for want of a right that the library catches shows here, too: something is
 * missing then that should be there.
 */
#include "base/cleanup.h"
#include "rig.h"

#define TRUSTED "wa" /* may carry out in part what is not their work */

/* ---- the table */

enum { NOT_CALLED, SAME, REFUSED, PARTLY };

static const char *const shown_as[] = {"", "same", "refused", "partly"};

struct row {
    char function[32];
    int calls, of[TEST_ROLES];
};

static struct row rows[128];
static size_t nrows;

/* The function of the call itself, which is the last in the line. */
static const char *function_of(const char *line)
{
    size_t n;
    const char *name = town_function(line, &n);

    return text("%.*s", (int)n, name);
}

static struct row *row_of(const char *line)
{
    const char *name = function_of(line);

    for (size_t i = 0; i < nrows; i++)
        if (strcmp(rows[i].function, name) == 0)
            return &rows[i];
    assert_true(nrows < COUNT(rows));
    (void)snprintf(rows[nrows].function, sizeof(rows[0].function), "%s", name);
    return &rows[nrows++];
}

/* Print the lines of `from` that `in` does not have. */
static void print_missing(const char *sign, struct buf *from, struct buf *in)
{
    char *rest = mem_strdup(buf_str(from)), *all = rest, *line;
    char *other = mem_printf("\n%s", buf_str(in));

    while ((line = strsep(&rest, "\n")) != NULL) {
        char *whole = mem_printf("\n%s\n", line);

        if (line[0] != '\0' && strstr(other, whole) == NULL)
            print_message("    %s %.200s\n", sign, line);
        free(whole);
    }
    free(other);
    free(all);
}

static bool is_same_effect(struct effect *a, struct effect *b)
{
    return is_same(&a->reply, &b->reply) && is_same(&a->rest, &b->rest);
}

static bool is_its_work(size_t role, const struct town_call *c)
{
    return strchr(c->roles, test_roles[role][0]) != NULL;
}

static void print_difference(size_t role, const char *line, struct effect *want, struct effect *got)
{
    print_message("%s: later_%s\n", test_roles[role], line);
    print_message("    - %.200s\n    + %.200s\n", buf_str(&want->reply), buf_str(&got->reply));
    print_missing("-", &want->rest, &got->rest);
    print_missing("+", &got->rest, &want->rest);
}

/* before: the effect of making no call. -> whether the effect is as it should be */
static bool try_role(size_t role, const struct town_call *c, struct effect *want,
                     struct effect *before)
{
    struct effect got = play(rig.role[role], c->line);
    int how = is_same_effect(want, &got)          ? SAME
              : is_same(&before->rest, &got.rest) ? REFUSED
                                                  : PARTLY;
    bool is_fine = how == SAME;
    struct row *row = row_of(c->line);

    if (!is_its_work(role, c))
        is_fine = how != PARTLY || strchr(TRUSTED, test_roles[role][0]) != NULL;
    if (how > row->of[role])
        row->of[role] = how;
    if (!is_fine)
        print_difference(role, c->line, want, &got);
    effect_done(&got);
    return is_fine;
}

static void show_table(void)
{
    print_message("%-18s %5s", "function", "calls");
    for (size_t k = 0; k < TEST_ROLES; k++)
        print_message(" %9s", test_roles[k]);
    print_message("\n");
    for (size_t i = 0; i < nrows; i++) {
        print_message("%-18s %5d", rows[i].function, rows[i].calls);
        for (size_t k = 0; k < TEST_ROLES; k++)
            print_message(" %9s", shown_as[rows[i].of[k]]);
        print_message("\n");
    }
}

static void test_each_function_as_each_role(void **state)
{
    int wrong = 0;

    (void)state;
    build();
    for (size_t i = 0; i < COUNT(town_calls); i++) {
        const struct town_call *c = &town_calls[i];
        struct effect before = play(NULL, c->line), want = play(rig.all, c->line);

        row_of(c->line)->calls++;
        if ((buf_str(&want.reply)[0] == '!') != (strchr(c->roles, '!') != NULL))
            wrong += (print_message("later_%s: %s\n", c->line, buf_str(&want.reply)), 1);
        for (size_t k = 0; k < TEST_ROLES; k++)
            wrong += !try_role(k, c, &want, &before);
        effect_done(&before);
        effect_done(&want);
    }
    show_table();
    assert_int_equal(wrong, 0);
}

/* ---- the rights of a role, one by one */

/* Whether some of the role's work is not done without this command. want: by number of the call. */
static bool is_hindered(size_t role, const char *command, struct effect *want)
{
    char used[48];
    bool is_same_all = true;

    (void)snprintf(used, sizeof(used), "cmdstat_%s:", command);
    for (size_t i = 0; i < COUNT(town_calls) && is_same_all; i++) {
        struct effect got;

        if (!is_its_work(role, &town_calls[i]) || strstr(want[i].used, used) == NULL)
            continue;
        got = play(rig.role[role], town_calls[i].line);
        is_same_all = is_same_effect(&want[i], &got);
        effect_done(&got);
    }
    return !is_same_all;
}

/* Rights that are needed, but by no call of the town. */
static bool is_for_other_calls(size_t role, const char *command)
{
    static const struct {
        const char *command, *roles; /* their first letters */
    } list[] = {
        {"type", "pmcwoa"},     /* to name a foreign type in an error */
        {"del", "pca"},         /* to take back, or to remove at once what would soon expire */
        {"srem", "pmco"},       /* the same, and queues that stood aside */
        {"pexpire", "pmcoa"},   /* a large payload that is replaced */
        {"hexists", "pmcwoad"}, /* when there are a hundred notes */
        {"exists", "pc"},       /* waiters of several gates */
        {"info", "wd"},    /* is it a node of a cluster? The check of its slot does without it */
        {"persist", "pc"}, /* a job takes what a lease held */
        {"pexpiretime", "pcwa"}, {"zmscore", "pmc"},
        {"pttl", "w"}, /* these three: later_v1_rights, which daemons ask first, wants them */
        {"strlen", "wo"},        {"zrank", "wo"},
    };

    for (size_t i = 0; i < COUNT(list); i++)
        if (strcmp(list[i].command, command) == 0)
            return strchr(list[i].roles, test_roles[role][0]) != NULL;
    return false;
}

/* Take away each command of the library in turn. -> how many of them were not missed */
static int try_without(size_t role, struct effect *want)
{
    char *rights = mem_strdup(rig.line[role]), *rest = rights;
    char *right;
    int idle = 0;

    while ((right = strsep(&rest, " ")) != NULL) {
        bool is_inner = right[0] == '(';
        const char *name = right + is_inner;

        if (name[0] != '+' || !test_library_calls(name + 1))
            continue;
        /* A selector in brackets has the command and its keys. */
        (void)redis("ACL SETUSER %s %s%s", test_roles[role], is_inner ? "clearselectors" : "-",
                    is_inner ? "" : name + 1);
        if (!is_for_other_calls(role, name + 1) && !is_hindered(role, name + 1, want)) {
            print_message("%s does not need %s\n", test_roles[role], right);
            idle++;
        }
        set_user(role);
    }
    free(rights);
    return idle;
}

static void test_each_right_is_needed(void **state)
{
    struct effect want[COUNT(town_calls)];
    int idle = 0;

    (void)state;
    build();
    for (size_t i = 0; i < COUNT(town_calls); i++)
        want[i] = play(rig.all, town_calls[i].line);
    for (size_t i = 0; i < TEST_ROLES; i++)
        idle += try_without(i, want);
    for (size_t i = 0; i < COUNT(town_calls); i++)
        effect_done(&want[i]);
    assert_int_equal(idle, 0);
}

/* A worker lacks the right to a removal, with which an addition would be undone: so the rights are
 * asked before the first write, and a claim writes nothing. */
static void test_a_claim_without_a_right_writes_nothing(void **state)
{
    static const char line[] = "v1_sync $w 1 0 100 0 1 mail 100 1048576 0";
    struct effect before, got;
    size_t role = 0;

    (void)state;
    build();
    while (test_roles[role][0] != 'w')
        role++;
    before = play(NULL, line);
    (void)redis("ACL SETUSER %s -zrem", test_roles[role]);
    got = play(rig.role[role], line);
    set_user(role);
    assert_int_equal(strncmp(buf_str(&got.reply), "!NOPERM", 7), 0);
    assert_true(is_same(&before.rest, &got.rest));
    effect_done(&before);
    effect_done(&got);
}

/* ---- by the text of the library */

static bool is_work_of(size_t role, const char *function)
{
    for (size_t i = 0; i < COUNT(town_calls); i++)
        if (strcmp(function_of(town_calls[i].line), function) == 0 &&
            is_its_work(role, &town_calls[i]))
            return true;
    return false;
}

/* The text cannot tell that dashboards only read: they need no command that writes, nor
 * PEXPIRETIME, which a write needs; that a caller of the bare functions is no job of a fair queue,
 * whose run time is counted; and that a copy that is buried has no day in a calendar, and no
 * on_dead. The check of a slot does without INFO. */
static bool cannot_come_to(size_t role, const char *function, const char *command)
{
    if (strcmp(command, "info") == 0)
        return true;
    if (strcmp(function, "publish") == 0 &&
        (strcmp(command, "setbit") == 0 || strcmp(command, "strlen") == 0))
        return true;
    if (test_roles[role][0] == 'c' && strcmp(command, "hincrby") == 0)
        return true;
    if (test_roles[role][0] == 'd' && strcmp(command, "pexpiretime") == 0)
        return true;
    return test_roles[role][0] == 'd' &&
           strstr(redis("COMMAND INFO %s", command), "readonly") == NULL;
}

/* A role has every command that a function of its work could reach, on paths that the town does not
 * take as well. */
static void test_no_right_is_missing(void **state)
{
    char function[64], command[32], part[80];
    CLEANUP_FREE char *line = mem_printf("awk -f %s/tests/install/acl/reach.awk %s/laterd.lua",
                                         test_source_dir(), test_build_dir());
    FILE *f = popen(line, "re");
    int n = 0, missing = 0;

    (void)state;
    assert_non_null(f);
    for (; (void)fx_forget(NULL),
           fscanf(f, "later_%63s %31s %79[^\n]\n", function, command, part) == 3;
         n++) {
        for (char *p = command; *p != '\0'; p++)
            *p = (char)(*p + 32);
        for (size_t i = 0; i < TEST_ROLES; i++) {
            if (!is_work_of(i, function) || has_right(i, command) ||
                cannot_come_to(i, function, command))
                continue;
            print_message("%s lacks +%s: later_%s, %s\n", test_roles[i], command, function, part);
            missing++;
        }
    }
    assert_int_equal(pclose(f), 0);
    assert_true(n > 500);
    assert_int_equal(missing, 0);
}

/* Every function is called in the town. */
static void test_all_are_called(void **state)
{
    int n;

    (void)state;
    (void)redis("FUNCTION LIST");
    n = len_at(0, 5, -1);
    assert_true(n > 40);
    for (int i = 0; i < n; i++) {
        const char *name = at(0, 5, i, 1, -1) + strlen("later_");
        size_t k = 0;

        while (k < COUNT(town_calls) && strcmp(function_of(town_calls[k].line), name) != 0)
            k++;
        if (k == COUNT(town_calls))
            fail_msg("later_%s is not among town_calls (tests/lua/town.h)", name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FX_TEST(test_all_are_called), FX_TEST(test_each_function_as_each_role),
        FX_TEST(test_no_right_is_missing), FX_TEST(test_each_right_is_needed),
        FX_TEST(test_a_claim_without_a_right_writes_nothing)};

    return cmocka_run_group_tests(tests, open_rig, close_rig);
}
