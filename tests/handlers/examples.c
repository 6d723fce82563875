#include "examples.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/mem.h"

#include "../support/env.h"
#include "../support/proc.h"

#define MIB_BYTES ((size_t)1024 * 1024)

const struct stream_example stream_examples[STREAM_EXAMPLES] = {
    {"stream.sh", "sh", 1, false, false, 200},    {"stream.py", "python3", 16, true, true, 5000},
    {"stream.pl", "perl", 1, false, false, 5000}, {"stream.js", "node", 64, true, true, 5000},
    {"stream", NULL, 64, false, false, 20000},
};

char *stream_example_path(const struct stream_example *e)
{
    return mem_printf("%s/handlers/examples/%s",
                      e->interpreter != NULL ? test_source_dir() : test_build_dir(), e->name);
}

bool stream_example_can_run(const struct stream_example *e)
{
    /* dash has no --version. */
    const char *argv[] = {"sh", "-c",
                          "command -v \"$0\" && { [ \"$0\" = sh ] || \"$0\" --version; }",
                          e->interpreter, NULL};

    return e->interpreter == NULL ||
           proc_run((char *const *)(uintptr_t)argv, NULL, 0, NULL, NULL) == 0;
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

char *stream_answer(const char *payload, size_t len)
{
    static const char *const asked[][2] = {
        {"fail", "fail asked to"}, {"retry", "retry 1s later please"}, {"dead", "dead never"}};
    size_t n = len > 0 && payload[len - 1] == '\n' ? len - 1 : len;
    size_t words = 0;

    for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++)
        if (n == strlen(asked[i][0]) && memcmp(payload, asked[i][0], n) == 0)
            return mem_strdup(asked[i][1]);
    for (size_t i = 0; i < len; i++)
        words += !is_space(payload[i]) && (i == 0 || is_space(payload[i - 1]));
    return mem_printf("ok %zu words in %zu bytes", words, len);
}

char *stream_words(size_t n, unsigned seed)
{
    char *bytes = mem_new(n + 1);

    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525U + 1013904223U;
        bytes[i] = "abcdefghijklmnopqrstuvwxy \t\n0123"[seed >> 27];
    }
    return bytes;
}

struct list {
    struct stream_case *cases;
    size_t n;
};

/* Takes ownership of bytes. */
static void add(struct list *l, const char *name, char *bytes, size_t len)
{
    l->cases = mem_grow(l->cases, l->n + 1, sizeof(*l->cases));
    l->cases[l->n++] = (struct stream_case){name, bytes, len, stream_answer(bytes, len)};
}

static void add_text(struct list *l, const char *name, const char *bytes, size_t len)
{
    add(l, name, mem_dup(bytes, len), len);
}

#define ADD(name, text) add_text(&l, name, text, sizeof(text) - 1)

static void add_every_byte(struct list *l)
{
    char *bytes = mem_new(1024);

    for (size_t i = 0; i < 1024; i++)
        bytes[i] = (char)(i < 512 ? i : 1023 - i);
    add(l, "every byte, up and down", bytes, 1024);
}

/* Sizes around the limits of buffers and pipes. */
static void add_sizes(struct list *l)
{
    static const size_t sizes[] = {1, 4096, 65536, MIB_BYTES};

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        for (size_t len = sizes[i] - 1; len <= sizes[i] + 1; len++)
            add(l, "words", stream_words(len, (unsigned)len), len);
}

struct stream_case *stream_cases_new(size_t *ret_n)
{
    struct list l = {NULL, 0};

    ADD("nothing", "");
    ADD("text", "one two three\n");
    ADD("only a line feed", "\n");
    ADD("only line feeds", "\n\n\n\n\n");
    ADD("only NULs", "\0\0\0\0");
    ADD("NULs and line feeds", "\0\n\0 a\0b \n\0\n");
    ADD("the shell's own", "$(reboot) `id` * ? [a-z] \\n \\c 'x \"y -n ; &\n");
    ADD("a header", "job id=j1k0pe999998 len=3\nabc\ncancel j1k0pe999998\n");
    ADD("an answer", "ok j1k0pe999998\nlater-stream 1\n");
    ADD("no end of line", "a b");
    ADD("Windows", "a\r\nb\r\n\x1a");
    ADD("UTF-8, and what is none", "\xc3\xa4\xc2\xa0\xe2\x80\xa8 \xff\xfe\x85\xa0\n");
    ADD("all that is white", " \t\n\v\f\ra \t\n\v\f\rb");
    ADD("nearly asked to fail", "fail\0");
    ADD("nearly asked to die", " dead");
    ADD("nearly asked to sleep", "sleep 100 times");
    ADD("asked to sleep too exactly", "sleep 0.5");
    ADD("asked not to sleep", "sleep 0");
    ADD("asked to fail", "fail");
    ADD("asked to fail by a line", "fail\n");
    ADD("asked to try again", "retry");
    ADD("asked to die", "dead\n");
    add_every_byte(&l);
    add_sizes(&l);
    *ret_n = l.n;
    return l.cases;
}

void stream_cases_free(struct stream_case *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(cases[i].payload);
        free(cases[i].answer);
    }
    free(cases);
}
