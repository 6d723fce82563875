#include "daemon/job_steps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "daemon/step_socket.h"
#include "redis/error_reply.h"

#define KEEP "later_v1_keep"

struct job_steps {
    struct step_socket *socket; /* NULL: it could not be made */
    struct link *link;
    struct runner *runner;
    char root[80];
    char epoch[24]; /* "": not registered */
};

static void on_kept(void *arg, const struct reply *r)
{
    struct step_caller *c = arg;
    const struct reply *word = reply_at(r, 0), *output = reply_at(r, 1);

    if (reply_kind(r) == REPLY_ERROR) {
        bool is_final = strncmp(reply_str(r), "ELATER_", 7) == 0 ||
                        error_reply_class(reply_str(r)) == ERROR_CLASS_LIBRARY;

        step_caller_say(c, is_final ? "refused" : "again", reply_str(r));
    } else if (reply_is(word, "run")) {
        step_caller_say(c, "run", "");
    } else if (reply_is(word, "kept")) {
        step_caller_kept(c, reply_str(output), reply_len(output));
    } else {
        step_caller_say(c, "gone", "this attempt was given up: another worker may run the job");
    }
}

static void on_request(void *arg, struct step_caller *c, const struct step_request *q,
                       const char *output)
{
    struct job_steps *s = arg;
    const struct job *job = runner_job_of(s->runner, q->token);
    char start[24];
    const char *argv[] = {"FCALL", KEEP, "1", s->root, s->epoch, NULL, start, q->name, output};
    size_t lens[sizeof(argv) / sizeof(argv[0])];
    int n = q->has_output ? 9 : 8;

    if (job == NULL) {
        step_caller_say(c, "gone", "LATER_STEP is of no attempt that runs here");
        return;
    }
    argv[5] = job->id;
    (void)snprintf(start, sizeof(start), "%lld", (long long)job->start);
    for (int i = 0; i < 8; i++)
        lens[i] = strlen(argv[i]);
    lens[8] = q->output_len;
    if (s->epoch[0] == '\0' || !link_is_up(s->link) ||
        link_call(s->link, n, argv, lens, on_kept, c) < 0)
        step_caller_say(c, "again", "there is no link to Redis");
}

struct job_steps *job_steps_new(struct loop *loop, struct link *link, struct runner *runner,
                                const char *ns)
{
    struct job_steps *s = mem_new(sizeof(*s));
    struct err err = ERR_INIT;

    *s = (struct job_steps){.link = link, .runner = runner};
    (void)snprintf(s->root, sizeof(s->root), "later:{%s}", ns);
    s->socket = step_socket_new(loop, ns, on_request, s, &err);
    if (s->socket != NULL)
        runner_set_step_socket(runner, step_socket_name(s->socket));
    else
        log_warn("event=no-steps reason=\"%s\" effect=\"later step does not work in handlers\"",
                 err.text);
    return s;
}

void job_steps_free(struct job_steps *s)
{
    if (s == NULL)
        return;
    step_socket_free(s->socket);
    free(s);
}

void job_steps_registered(struct job_steps *s, int64_t epoch)
{
    (void)snprintf(s->epoch, sizeof(s->epoch), "%lld", (long long)epoch);
}

void job_steps_link_down(struct job_steps *s)
{
    if (s->socket != NULL)
        step_socket_say_again(s->socket, "the link to Redis was lost");
}
