#include "job/step.h"

#include <ctype.h>
#include <string.h>

#include "base/text.h"

bool step_is_name(const char *name)
{
    static const char allowed[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:-";
    size_t n = strlen(name);

    return n > 0 && n <= STEP_NAME_MAX && isalnum((unsigned char)name[0]) &&
           strspn(name, allowed) == n;
}

/* The next word of the line, in out. False: it is empty, or too long. */
static bool take_word(char **rest, char *out, size_t size)
{
    const char *word = strsep(rest, " ");

    if (word == NULL || word[0] == '\0' || strlen(word) >= size)
        return false;
    text_copy(out, size, word);
    return true;
}

bool step_request_parse(const char *p, size_t n, struct step_request *ret)
{
    char line[STEP_LINE_MAX + 1], *rest = line;
    int64_t bytes = 0;

    *ret = (struct step_request){.has_output = false};
    if (n > STEP_LINE_MAX || memchr(p, '\0', n) != NULL)
        return false;
    memcpy(line, p, n);
    line[n] = '\0';
    if (!take_word(&rest, ret->token, sizeof(ret->token)) ||
        !take_word(&rest, ret->name, sizeof(ret->name)) || !step_is_name(ret->name))
        return false;
    ret->has_output = rest != NULL;
    if (rest != NULL && text_parse_int(rest, 0, STEP_OUTPUT_MAX, &bytes) < 0)
        return false;
    ret->output_len = (size_t)bytes;
    return true;
}
