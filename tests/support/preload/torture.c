/*
 * Lets the Nth call of one kind of function fail; preloaded into laterd or later. LATER_TORTURE
 * names the file with the order (struct test_torture, tests/support/torture.h). The count of calls
 * and the caller of the first that failed are written back, so the test knows when N is beyond the
 * last call.
 *
 * Only the process itself is affected: laterd does not pass LD_PRELOAD to handlers.
 */
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include "../torture.h"
#include "shared.h"

/* glibc's own functions: no allocation is needed to find them. */
extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t count, size_t n);
extern void *__libc_realloc(void *p, size_t n);
extern void *__libc_memalign(size_t align, size_t n);

static struct test_torture *shared;

/* The functions called here are ours, but they do not fail before `shared` is set. */
__attribute__((constructor)) static void find_order(void)
{
    struct test_torture *order = shared_map("LATER_TORTURE", sizeof(*order));

    if (order == NULL)
        return;
    /* The first backtrace loads a library, which allocates: do it now. */
    (void)backtrace((void *[1]){NULL}, 1);
    shared = order;
}

/* Used instead of dladdr, which would allocate and lock. */
static int note_module(struct dl_phdr_info *info, size_t size, void *caller)
{
    uintptr_t at = (uintptr_t)caller;
    const char *name = info->dlpi_name;

    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &info->dlpi_phdr[i];
        uintptr_t from = info->dlpi_addr + h->p_vaddr;

        if (h->p_type != PT_LOAD || at < from || at >= from + h->p_memsz)
            continue;
        if (strrchr(name, '/') != NULL)
            name = strrchr(name, '/') + 1;
        strncpy(shared->module, name[0] != '\0' ? name : "program", sizeof(shared->module) - 1);
        shared->offset = at - info->dlpi_addr;
        return 1;
    }
    return 0;
}

/* Note the first caller outside libc and this file (strdup allocates for its caller). */
static void note_caller(void)
{
    void *at[16];
    int n = backtrace(at, 16);

    for (int i = 1; i < n; i++) {
        memset(shared->module, 0, sizeof(shared->module));
        if (dl_iterate_phdr(note_module, at[i]) == 1 && strncmp(shared->module, "libc.", 5) != 0 &&
            strncmp(shared->module, "torture.", 8) != 0)
            return;
    }
}

/* True if this call must fail; then errno is set. */
static bool fails(enum test_torture_kind kind)
{
    static const int errnums[] = {
#define X(name, errnum) errnum,
        TEST_TORTURES(X)
#undef X
    };
    int64_t n;

    if (shared == NULL || shared->kind != (int32_t)kind)
        return false;
    n = __atomic_add_fetch(&shared->calls, 1, __ATOMIC_SEQ_CST);
    if (shared->nth == 0 || n < shared->nth || (n > shared->nth && !shared->for_ever))
        return false;
    if (__atomic_add_fetch(&shared->failed, 1, __ATOMIC_SEQ_CST) == 1)
        note_caller();
    errno = errnums[kind];
    return true;
}

#define FAILS(kind) fails(TORTURE_##kind)

/* Only sockets, pipes and files can fail; an eventfd or timerfd cannot. */
static bool is_stream(int fd)
{
    struct stat st;
    int saved = errno;
    bool is = syscall(SYS_fstat, fd, &st) == 0 &&
              (S_ISSOCK(st.st_mode) || S_ISFIFO(st.st_mode) || S_ISREG(st.st_mode));

    errno = saved;
    return is;
}

static void *real(const char *name)
{
    void *f = dlsym(RTLD_NEXT, name);

    if (f == NULL)
        abort();
    return f;
}

/* ---- MALLOC */

void *malloc(size_t n)
{
    return FAILS(MALLOC) ? NULL : __libc_malloc(n);
}

void *calloc(size_t count, size_t n)
{
    return FAILS(MALLOC) ? NULL : __libc_calloc(count, n);
}

void *realloc(void *p, size_t n)
{
    return FAILS(MALLOC) ? NULL : __libc_realloc(p, n);
}

int posix_memalign(void **ret, size_t align, size_t n)
{
    void *p = FAILS(MALLOC) ? NULL : __libc_memalign(align, n);

    if (p == NULL)
        return ENOMEM;
    *ret = p;
    return 0;
}

/* ---- WRITE, READ */

ssize_t write(int fd, const void *p, size_t n)
{
    return is_stream(fd) && FAILS(WRITE) ? -1 : syscall(SYS_write, fd, p, n);
}

ssize_t writev(int fd, const struct iovec *at, int n)
{
    return is_stream(fd) && FAILS(WRITE) ? -1 : syscall(SYS_writev, fd, at, n);
}

ssize_t read(int fd, void *p, size_t n)
{
    return is_stream(fd) && FAILS(READ) ? -1 : syscall(SYS_read, fd, p, n);
}

/* ---- descriptors */

int pipe2(int fds[2], int flags)
{
    return FAILS(PIPE) ? -1 : (int)syscall(SYS_pipe2, fds, flags);
}

static int open_at(int dir, const char *path, int flags, mode_t mode)
{
    return (int)syscall(SYS_openat, dir, path, flags, mode);
}

int open(const char *path, int flags, ...)
{
    va_list ap;
    mode_t mode;

    va_start(ap, flags);
    mode = (flags & (O_CREAT | O_TMPFILE)) ? va_arg(ap, mode_t) : 0;
    va_end(ap);
    return FAILS(OPEN) ? -1 : open_at(AT_FDCWD, path, flags, mode);
}

int openat(int dir, const char *path, int flags, ...)
{
    va_list ap;
    mode_t mode;

    va_start(ap, flags);
    mode = (flags & (O_CREAT | O_TMPFILE)) ? va_arg(ap, mode_t) : 0;
    va_end(ap);
    return FAILS(OPEN) ? -1 : open_at(dir, path, flags, mode);
}

int socket(int domain, int type, int protocol)
{
    return FAILS(SOCKET) ? -1 : (int)syscall(SYS_socket, domain, type, protocol);
}

int connect(int fd, const struct sockaddr *addr, socklen_t len)
{
    return FAILS(CONNECT) ? -1 : (int)syscall(SYS_connect, fd, addr, len);
}

int epoll_ctl(int ep, int op, int fd, struct epoll_event *event)
{
    /* Removing a descriptor needs no memory. */
    return op != EPOLL_CTL_DEL && FAILS(EPOLL) ? -1
                                               : (int)syscall(SYS_epoll_ctl, ep, op, fd, event);
}

int epoll_create1(int flags)
{
    return FAILS(EVENT) ? -1 : (int)syscall(SYS_epoll_create1, flags);
}

int eventfd(unsigned n, int flags)
{
    return FAILS(EVENT) ? -1 : (int)syscall(SYS_eventfd2, n, flags);
}

int signalfd(int fd, const sigset_t *mask, int flags)
{
    return FAILS(EVENT) ? -1 : (int)syscall(SYS_signalfd4, fd, mask, (size_t)8, flags);
}

int inotify_init1(int flags)
{
    return FAILS(EVENT) ? -1 : (int)syscall(SYS_inotify_init1, flags);
}

int timerfd_create(clockid_t clock, int flags)
{
    return FAILS(TIMER) ? -1 : (int)syscall(SYS_timerfd_create, clock, flags);
}

int pidfd_open(pid_t pid, unsigned flags)
{
    return FAILS(PIDFD) ? -1 : (int)syscall(SYS_pidfd_open, pid, flags);
}

void *mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset)
{
    if (FAILS(MAP))
        return MAP_FAILED;
    return (void *)syscall(SYS_mmap, at, n, prot, flags, fd, offset);
}

/* ---- processes and threads */

int posix_spawn(pid_t *restrict pid, const char *restrict path,
                const posix_spawn_file_actions_t *fa, const posix_spawnattr_t *restrict attr,
                char *const argv[restrict], char *const envp[restrict])
{
    __typeof__(&posix_spawn) f = (__typeof__(&posix_spawn))real("posix_spawn");

    return FAILS(SPAWN) ? EAGAIN : f(pid, path, fa, attr, argv, envp);
}

int pthread_create(pthread_t *restrict id, const pthread_attr_t *restrict attr,
                   void *(*start)(void *), void *restrict arg)
{
    __typeof__(&pthread_create) f = (__typeof__(&pthread_create))real("pthread_create");

    return FAILS(THREAD) ? EAGAIN : f(id, attr, start, arg);
}
