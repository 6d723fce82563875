#include "web/access.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#include "base/text.h"
#include "redis/url.h"

#define TOKEN_BYTES 16
#define TOKEN_MIN 16 /* letters: fewer can be guessed */

static int make_token(char ret[ACCESS_TOKEN_MAX + 1], struct err *err)
{
    unsigned char random[TOKEN_BYTES];

    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
        return err_set(err, ERR_SYSTEM, "the kernel gives no random bytes for a token");
    for (size_t i = 0; i < sizeof(random); i++)
        (void)snprintf(ret + 2 * i, 3, "%02x", random[i]);
    return 0;
}

static bool is_plain(const char *p)
{
    for (; *p != '\0'; p++) {
        if (*p <= ' ' || *p >= 0x7f)
            return false;
    }
    return true;
}

int access_token(const char *file, char ret[ACCESS_TOKEN_MAX + 1], struct err *err)
{
    struct url secret = {.port = 0};
    size_t n;

    if (file[0] == '\0')
        return make_token(ret, err);
    /* The same rules as for a password: ours or root's, and closed to others. */
    if (url_read_password(file, &secret, err) < 0)
        return err_wrap(err, "web.token_file");
    n = strlen(secret.password);
    if (n < TOKEN_MIN || n > ACCESS_TOKEN_MAX || !is_plain(secret.password))
        return err_set(err, ERR_CONFIG,
                       "web.token_file: its first line is no token of %d to %d visible letters",
                       TOKEN_MIN, ACCESS_TOKEN_MAX);
    text_copy(ret, ACCESS_TOKEN_MAX + 1, secret.password);
    explicit_bzero(&secret, sizeof(secret));
    return 0;
}

/* How long it takes does not tell how many letters are right. */
static bool is_token(const char *given, const char *token)
{
    size_t n = strlen(token);
    unsigned char differs = strlen(given) != n;

    for (size_t i = 0; i < n && given[i] != '\0'; i++)
        differs |= (unsigned char)(given[i] ^ token[i]);
    return differs == 0;
}

bool access_check(const struct access_rules *rules, const struct http_request *r,
                  char who[ACCESS_WHO_MAX])
{
    const char *given = http_header(r, "Authorization");

    text_copy(who, ACCESS_WHO_MAX, "web");
    if (rules->user_header[0] != '\0') {
        const char *user = http_header(r, rules->user_header);

        text_copy(who, ACCESS_WHO_MAX, user);
        return user[0] != '\0' && strlen(user) < ACCESS_WHO_MAX && is_plain(user);
    }
    return strncasecmp(given, "Bearer ", 7) == 0 && is_token(given + 7, rules->token);
}
