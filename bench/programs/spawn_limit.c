/*
 * How many processes a second can this machine start and wait for? Each gets what a handler of
 * `mode: exec` gets: a payload on standard input; pipes at standard output, standard error and
 * descriptor 3, all read to their ends; and a pidfd that shows its end.
 *
 *   spawn_limit THREADS RUNS PROGRAM
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define THREADS_MAX 256
#define PIPES 4

extern char **environ;
static atomic_int left;
static char *program;

static void give_up(const char *what)
{
    perror(what);
    exit(71);
}

/* Descriptor i of the child is one end of pipe i: it reads from 0 and writes to the others. */
static pid_t spawn(int pipes[PIPES][2])
{
    char *argv[] = {program, NULL};
    posix_spawn_file_actions_t actions;
    pid_t pid;

    (void)posix_spawn_file_actions_init(&actions);
    for (int i = 0; i < PIPES; i++) {
        if (pipe2(pipes[i], O_CLOEXEC) != 0)
            give_up("pipe2");
        (void)posix_spawn_file_actions_adddup2(&actions, pipes[i][i == 0 ? 0 : 1], i);
    }
    if (posix_spawn(&pid, program, &actions, NULL, argv, environ) != 0)
        give_up(program);
    (void)posix_spawn_file_actions_destroy(&actions);
    for (int i = 0; i < PIPES; i++)
        (void)close(pipes[i][i == 0 ? 0 : 1]);
    return pid;
}

static void run_one(void)
{
    int pipes[PIPES][2];
    pid_t pid = spawn(pipes);
    int pidfd = pidfd_open(pid, 0);
    struct pollfd over = {pidfd, POLLIN, 0};
    siginfo_t info;
    char bytes[4096];

    if (pidfd < 0)
        give_up("pidfd_open");
    if (write(pipes[0][1], "hello", 5) < 0) {
        /* The child may have closed its end already. */
    }
    (void)close(pipes[0][1]);
    for (int i = 1; i < PIPES; i++) {
        while (read(pipes[i][0], bytes, sizeof(bytes)) > 0) {
        }
        (void)close(pipes[i][0]);
    }
    if (poll(&over, 1, -1) != 1 || waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED) != 0)
        give_up("waitid");
    (void)close(pidfd);
}

static void *spawner(void *arg)
{
    (void)arg;
    while (atomic_fetch_sub(&left, 1) > 0)
        run_one();
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS_MAX];
    struct timespec from, to;
    int n, runs;
    double seconds;

    if (argc != 4 || (n = atoi(argv[1])) < 1 || n > THREADS_MAX || (runs = atoi(argv[2])) < 1) {
        (void)fprintf(stderr, "usage: spawn_limit THREADS RUNS PROGRAM\n");
        return 64;
    }
    program = argv[3];
    atomic_store(&left, runs);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)clock_gettime(CLOCK_MONOTONIC, &from);
    for (int i = 0; i < n; i++) {
        if (pthread_create(&threads[i], NULL, spawner, NULL) != 0)
            give_up("pthread_create");
    }
    for (int i = 0; i < n; i++)
        (void)pthread_join(threads[i], NULL);
    (void)clock_gettime(CLOCK_MONOTONIC, &to);
    seconds = (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9;
    (void)printf("{\"n\": %d, \"per_s\": %.1f}\n", runs, runs / seconds);
    return 0;
}
