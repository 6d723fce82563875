#include "cli/bulk/crontab.h"

#include <ctype.h>
#include <string.h>

#include "base/text.h"

static const char *skip_blanks(const char *p)
{
    return p + strspn(p, " \t");
}

/* Copy the next word. -> what follows; NULL: there is none, or it is too long */
static const char *take_word(const char *p, char *out, size_t size)
{
    size_t n = strcspn(p, " \t");

    if (n == 0 || n >= size)
        return NULL;
    memcpy(out, p, n);
    out[n] = '\0';
    return skip_blanks(p + n);
}

/* NAME=VALUE with optional blanks and quotes. */
static bool take_variable(const char *p, struct crontab_line *ret)
{
    size_t n = 0, len;
    const char *value;

    while (isalnum((unsigned char)p[n]) || p[n] == '_')
        n++;
    value = skip_blanks(p + n);
    if (n == 0 || n >= sizeof(ret->name) || isdigit((unsigned char)p[0]) || *value != '=')
        return false;
    memcpy(ret->name, p, n);
    ret->name[n] = '\0';
    value = skip_blanks(value + 1);
    len = strlen(value);
    while (len > 0 && (value[len - 1] == ' ' || value[len - 1] == '\t'))
        len--;
    if (len >= 2 && (value[0] == '"' || value[0] == '\'') && value[len - 1] == value[0]) {
        value++;
        len -= 2;
    }
    if (len >= sizeof(ret->value))
        return false;
    memcpy(ret->value, value, len);
    ret->value[len] = '\0';
    ret->kind = CRONTAB_VARIABLE;
    return true;
}

/* -> what follows; NULL: there are too few fields */
static const char *take_expression(const char *p, struct crontab_line *ret)
{
    int fields = *p == '@' ? 1 : 5;
    size_t n = 0;

    for (int i = 0; i < fields && p != NULL; i++) {
        char word[256];

        p = take_word(p, word, sizeof(word));
        if (p == NULL || n + strlen(word) + 2 > sizeof(ret->expression))
            return NULL;
        if (i > 0)
            ret->expression[n++] = ' ';
        text_copy(ret->expression + n, sizeof(ret->expression) - n, word);
        n += strlen(word);
    }
    return p;
}

static void take_command(const char *p, struct crontab_line *ret)
{
    size_t n = 0;

    for (; *p != '\0' && *p != '%' && n < sizeof(ret->command) - 1; p++) {
        if (p[0] == '\\' && p[1] == '%')
            p++;
        ret->command[n++] = *p;
    }
    ret->command[n] = '\0';
    ret->has_input = *p == '%';
}

int crontab_parse(const char *text, bool is_system, struct crontab_line *ret, struct err *err)
{
    const char *p = skip_blanks(text);

    *ret = (struct crontab_line){.kind = CRONTAB_NOTHING};
    if (*p == '\0' || *p == '#' || take_variable(p, ret))
        return 0;
    if (strlen(p) >= CRONTAB_TEXT_MAX)
        return err_set(err, ERR_FORMAT, "a line has at most %d bytes", CRONTAB_TEXT_MAX - 1);
    ret->kind = CRONTAB_ENTRY;
    p = take_expression(p, ret);
    if (p != NULL && is_system)
        p = take_word(p, ret->user, sizeof(ret->user));
    if (p == NULL || *p == '\0')
        return err_set(err, ERR_FORMAT, "that is no entry: minute hour day month weekday %sCOMMAND",
                       is_system ? "USER " : "");
    take_command(p, ret);
    return 0;
}
