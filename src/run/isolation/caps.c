#include "run/isolation/caps.h"

#include <linux/capability.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* What laterd can use: set the user of a handler, kill it, set its niceness, limits, mounts. */
static const int useful[] = {CAP_SETUID,   CAP_SETGID,       CAP_KILL,
                             CAP_SYS_NICE, CAP_SYS_RESOURCE, CAP_SYS_ADMIN};

#define NUSEFUL (sizeof(useful) / sizeof(useful[0]))

struct sets {
    struct __user_cap_data_struct at[_LINUX_CAPABILITY_U32S_3];
};

static struct __user_cap_header_struct header(void)
{
    return (struct __user_cap_header_struct){_LINUX_CAPABILITY_VERSION_3, 0};
}

static int get(struct sets *s)
{
    struct __user_cap_header_struct h = header();

    memset(s, 0, sizeof(*s));
    return (int)syscall(SYS_capget, &h, s->at);
}

static int set(const struct sets *s)
{
    struct __user_cap_header_struct h = header();

    return (int)syscall(SYS_capset, &h, s->at);
}

static bool is_empty(const struct sets *s)
{
    for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
        if ((s->at[i].permitted | s->at[i].inheritable) != 0)
            return false;
    return true;
}

bool caps_has(int cap)
{
    struct sets s;

    return get(&s) == 0 && (s.at[CAP_TO_INDEX(cap)].effective & CAP_TO_MASK(cap)) != 0;
}

static bool is_lender; /* set before there are threads */

/* A process gets its inheritable set from the thread that starts it; only capabilities in that set
 * can become ambient. A process without capabilities makes no capset call, which a service's filter
 * of system calls may refuse. */
static void set_inheritable(bool is_lent)
{
    struct sets s;

    if (get(&s) < 0 || is_empty(&s))
        return;
    for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
        s.at[i].inheritable = 0;
    for (size_t i = 0; is_lent && i < NUSEFUL; i++)
        s.at[CAP_TO_INDEX(useful[i])].inheritable |=
            s.at[CAP_TO_INDEX(useful[i])].permitted & CAP_TO_MASK(useful[i]);
    (void)set(&s);
}

void caps_init(void)
{
    is_lender = true;
    caps_take_back();
}

/* Raising fails for capabilities that are not permitted; ignore that. */
void caps_lend(void)
{
    if (!is_lender)
        return;
    set_inheritable(true);
    for (size_t i = 0; i < NUSEFUL; i++)
        (void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, useful[i], 0, 0);
}

void caps_take_back(void)
{
    if (!is_lender)
        return;
    (void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    set_inheritable(false);
}

int caps_drop(void)
{
    struct sets s;

    (void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    if (get(&s) < 0)
        return -1;
    if (is_empty(&s))
        return 0;
    for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
        s.at[i].inheritable = 0;
        if (geteuid() != 0)
            s.at[i].permitted = s.at[i].effective = 0;
    }
    return set(&s);
}
