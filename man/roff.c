#include "roff.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define LINE_MAX_BYTES 72

/* What ASCII typed by hand means and roff would take for typography, or for a command. */
static const char *name_of(char c)
{
    static const struct {
        char c;
        const char *name;
    } names[] = {{'\\', "\\e"},  {'-', "\\-"},   {'\'', "\\(aq"},
                 {'`', "\\(ga"}, {'^', "\\(ha"}, {'~', "\\(ti"}};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (names[i].c == c)
            return names[i].name;
    return NULL;
}

static uint32_t code_point(const unsigned char *p, size_t len)
{
    uint32_t c = p[0] & (0xffU >> (len + 1));

    for (size_t i = 1; i < len; i++)
        c = c << 6 | (p[i] & 0x3fU);
    return c;
}

void roff_text(struct buf *out, const char *text, size_t n)
{
    const unsigned char *p = (const unsigned char *)text;
    size_t len;

    for (size_t i = 0; i<n; i += len> 0 ? len : 1) {
        len = text_utf8_len(p + i, n - i);
        if (len > 1)
            buf_printf(out, "\\[u%04X]", code_point(p + i, len));
        else if (name_of(text[i]) != NULL)
            buf_puts(out, name_of(text[i]));
        else
            buf_add(out, text + i, 1);
    }
}

void roff_arg(struct buf *out, const char *text)
{
    buf_puts(out, "\"");
    for (; *text != '\0'; text++) {
        if (*text == '"')
            buf_puts(out, "\\(dq");
        else
            roff_text(out, text, 1);
    }
    buf_puts(out, "\"");
}

static size_t count(const char *text, size_t n, char c)
{
    size_t found = 0;

    for (size_t i = 0; i < n; i++)
        found += text[i] == c;
    return found;
}

static bool is_sentence_end(const char *word, size_t n)
{
    while (n > 0 && strchr(")\"'`", word[n - 1]) != NULL)
        n--;
    return n > 1 && strchr(".?!", word[n - 1]) != NULL && word[n - 2] != '.';
}

/* A word; backticks switch bold on and off if `has_bold`. A name is not hyphenated. */
static void put_word(struct buf *out, const char *word, size_t n, bool has_bold, bool *is_bold)
{
    if (count(word, n, '_') + count(word, n, '/') + count(word, n, ':') > 0)
        buf_puts(out, "\\%");
    for (size_t i = 0; i < n; i++) {
        if (word[i] == '`' && has_bold) {
            *is_bold = !*is_bold;
            buf_puts(out, *is_bold ? "\\fB" : "\\fP");
        } else {
            size_t len = text_utf8_len((const unsigned char *)word + i, n - i);

            len = len > 0 ? len : 1;
            roff_text(out, word + i, len);
            i += len - 1;
        }
    }
}

void roff_paragraph(struct buf *out, const char *text, size_t n)
{
    const char *end = text + n;
    bool has_bold = count(text, n, '`') % 2 == 0;
    bool is_bold = false, is_new = true;
    size_t start = out->len;

    while (text < end) {
        size_t word = strcspn(text, " \n");

        word = word < (size_t)(end - text) ? word : (size_t)(end - text);
        if (word == 0) {
            text++;
            continue;
        }
        if (!is_new && out->len - start + 1 + word > LINE_MAX_BYTES) {
            buf_puts(out, "\n");
            is_new = true;
        }
        if (is_new)
            start = out->len;
        buf_puts(out, !is_new ? " " : text[0] == '.' ? "\\&" : "");
        put_word(out, text, word, has_bold, &is_bold);
        is_new = is_sentence_end(text, word);
        if (is_new)
            buf_puts(out, "\n");
        text += word;
    }
    if (!is_new)
        buf_puts(out, "\n");
}

/* Lines that begin with blanks, as they are. Returns what is behind them. */
static const char *put_literal(struct buf *out, const char *prose)
{
    buf_puts(out, ".Bd -literal -offset indent\n");
    while (*prose == ' ') {
        size_t n = strcspn(prose, "\n");
        size_t skip = strspn(prose, " ");

        skip = skip < 2 ? skip : 2;
        buf_puts(out, prose[skip] == '.' ? "\\&" : "");
        roff_text(out, prose + skip, n - skip);
        buf_puts(out, "\n");
        prose += n + (prose[n] == '\n');
    }
    buf_puts(out, ".Ed\n");
    return prose;
}

/* The length of the lines up to an empty one, or to one that begins with blanks. */
static size_t paragraph_len(const char *prose)
{
    size_t n = 0;

    while (prose[n] != '\0' && prose[n] != '\n' && prose[n] != ' ') {
        n += strcspn(prose + n, "\n");
        n += prose[n] == '\n';
    }
    return n;
}

void roff_prose(struct buf *out, const char *prose)
{
    bool is_first = true;

    while (*prose != '\0') {
        if (*prose == '\n') {
            prose++;
        } else if (*prose == ' ') {
            prose = put_literal(out, prose);
            is_first = false;
        } else {
            size_t n = paragraph_len(prose);

            buf_puts(out, is_first ? "" : ".Pp\n");
            roff_paragraph(out, prose, n);
            prose += n;
            is_first = false;
        }
    }
}
