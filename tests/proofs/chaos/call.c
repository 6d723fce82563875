#include "call.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN 100 /* bytes of an argument that call_show prints */

void call_begin(struct call *c, const char *word)
{
    buf_clear(&c->bytes);
    c->n = 0;
    call_text(c, word);
}

void call_function(struct call *c, const char *function, const char *root)
{
    call_begin(c, "FCALL");
    call_text(c, function);
    call_text(c, "1");
    call_text(c, root);
}

void call_bytes(struct call *c, const char *p, size_t n)
{
    if (c->n == CALL_ARGS)
        abort();
    c->from[c->n] = c->bytes.len;
    c->len[c->n] = n;
    c->n++;
    buf_add(&c->bytes, p, n);
    buf_add(&c->bytes, "", 1);
}

void call_text(struct call *c, const char *s)
{
    call_bytes(c, s, strlen(s));
}

void call_number(struct call *c, int64_t n)
{
    call_printf(c, "%lld", (long long)n);
}

void call_printf(struct call *c, const char *fmt, ...)
{
    char text[512];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    call_text(c, text);
}

const char *call_word(const struct call *c, int i)
{
    return i < c->n ? c->bytes.data + c->from[i] : "";
}

static void show_byte(unsigned char b, struct buf *out)
{
    if (b < 32 || b > 126)
        buf_printf(out, "\\x%02x", b);
    else
        buf_printf(out, b == '"' || b == '\\' ? "\\%c" : "%c", b);
}

void call_show(const struct call *c, struct buf *out)
{
    for (int i = 0; i < c->n; i++) {
        const char *p = call_word(c, i);
        size_t n = c->len[i];
        bool is_quoted = n == 0 || strlen(p) != n || strcspn(p, " {\"'*\\<>|&;$\n") < n;

        buf_puts(out, i > 0 ? " " : "");
        buf_puts(out, is_quoted ? "\"" : "");
        for (size_t k = 0; k < n && k < SHOWN; k++)
            show_byte((unsigned char)p[k], out);
        if (n > SHOWN)
            buf_printf(out, "...[%zu bytes]", n);
        buf_puts(out, is_quoted ? "\"" : "");
    }
}

void call_done(struct call *c)
{
    buf_done(&c->bytes);
}
