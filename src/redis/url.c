#include "redis/url.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "redis/slot.h"

static int copy(char *to, size_t cap, const char *from, size_t n, struct err *err)
{
    if (n == 0 || n >= cap)
        return err_set(err, ERR_CONFIG, "a part of it is empty or too long");
    memcpy(to, from, n);
    to[n] = '\0';
    return 0;
}

static int parse_number(const char *s, int64_t min, int64_t max, int *ret, const char *what,
                        struct err *err)
{
    int64_t n;

    if (text_parse_int(s, min, max, &n) < 0)
        return err_set(err, ERR_CONFIG, "its %s is not a number from %d to %d", what, (int)min,
                       (int)max);
    *ret = (int)n;
    return 0;
}

static int refuse_password(struct err *err)
{
    return err_set(err, ERR_CONFIG,
                   "it holds a password: put that into a file and name it as "
                   "redis_password_file (or use REDISCLI_AUTH with the command)");
}

/* USER@ at the front, which ends before `end`. A password there is refused: ps and logs would show
 * it. */
static int parse_user(const char **at, const char *end, struct url *ret, struct err *err)
{
    const char *sign = strchr(*at, '@');
    const char *colon = strchr(*at, ':');

    if (sign == NULL || sign > end)
        return 0;
    if (colon != NULL && colon < sign)
        return refuse_password(err);
    if (copy(ret->user, sizeof(ret->user), *at, (size_t)(sign - *at), err) < 0)
        return -1;
    *at = sign + 1;
    return 0;
}

static int parse_query(const char *query, struct url *ret, struct err *err)
{
    if (strncmp(query, "?db=", 4) != 0)
        return err_set(err, ERR_CONFIG, "what follows the path of the socket is not ?db=N");
    return parse_number(query + 4, 0, 1000000, &ret->db, "database", err);
}

static int parse_unix(const char *at, struct url *ret, struct err *err)
{
    const char *slash = strchr(at, '/');
    size_t n;

    ret->is_unix = true;
    /* A user has no slash. What precedes an @ in the path is a part of the path. */
    if (parse_user(&at, slash != NULL ? slash : at + strlen(at), ret, err) < 0)
        return -1;
    n = strcspn(at, "?");
    if (at[0] != '/')
        return err_set(err, ERR_CONFIG, "the path of the socket must start with /");
    if (n > 107)
        return err_set(err, ERR_CONFIG, "the path of the socket is longer than 107 bytes");
    if (copy(ret->host, sizeof(ret->host), at, n, err) < 0)
        return -1;
    return at[n] == '?' ? parse_query(at + n, ret, err) : 0;
}

static int parse_host(const char **at, struct url *ret, struct err *err)
{
    size_t n;

    if (**at == '[') {
        n = strcspn(*at, "]");
        if ((*at)[n] != ']')
            return err_set(err, ERR_CONFIG, "a ] is missing");
        if (copy(ret->host, sizeof(ret->host), *at + 1, n - 1, err) < 0)
            return -1;
        *at += n + 1;
        return 0;
    }
    n = strcspn(*at, ":/?,");
    if (copy(ret->host, sizeof(ret->host), *at, n, err) < 0)
        return -1;
    *at += n;
    return 0;
}

/* HOST[:PORT]; *at moves to what follows. */
static int parse_place(const char **at, int default_port, struct url *ret, struct err *err)
{
    char port[8];
    size_t n;

    ret->port = default_port;
    if (parse_host(at, ret, err) < 0)
        return -1;
    text_copy(ret->name, sizeof(ret->name), ret->host);
    if (**at != ':')
        return 0;
    n = strcspn(++*at, "/,");
    if (copy(port, sizeof(port), *at, n, err) < 0 ||
        parse_number(port, 1, 65535, &ret->port, "port", err) < 0)
        return -1;
    *at += n;
    return 0;
}

int url_next_host(const char **at, int default_port, struct url *ret, struct err *err)
{
    if (parse_place(at, default_port, ret, err) < 0)
        return -1;
    if (**at == ',')
        (*at)++;
    else if (**at != '\0')
        return err_set(err, ERR_CONFIG, "what follows a host is not :PORT or a comma");
    return 0;
}

size_t url_list_count(const char *list)
{
    size_t n = 1;

    for (; *list != '\0'; list++)
        n += *list == ',';
    return n;
}

int url_list_host(const char *list, size_t i, int default_port, struct url *ret, struct err *err)
{
    do {
        if (url_next_host(&list, default_port, ret, err) < 0)
            return -1;
    } while (i-- > 0);
    return 0;
}

static int check_list(const char *list, const char *what, struct err *err)
{
    struct url unused;

    if (list[strlen(list) - 1] == ',')
        return err_set(err, ERR_CONFIG, "a %s is missing behind the last comma", what);
    while (*list != '\0')
        if (url_next_host(&list, URL_PORT, &unused, err) < 0)
            return -1;
    return 0;
}

/* [USER@]HOST[:PORT],… into list; *at moves to what follows. what: one of them */
static int parse_list(const char **at, char list[URL_LIST_MAX], const char *what, struct url *ret,
                      struct err *err)
{
    size_t n;

    if (parse_user(at, *at + strlen(*at), ret, err) < 0)
        return -1;
    n = strcspn(*at, "/?");
    if (copy(list, URL_LIST_MAX, *at, n, err) < 0 || check_list(list, what, err) < 0)
        return -1;
    *at += n;
    return 0;
}

/* [USER@]HOST[:PORT],…/MASTER[/DB] */
static int parse_sentinel(const char *at, struct url *ret, struct err *err)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";
    size_t n;

    if (parse_list(&at, ret->sentinels, "sentinel", ret, err) < 0)
        return -1;
    n = *at == '/' ? strspn(at + 1, letters) : 0;
    if (n == 0 || n >= sizeof(ret->master))
        return err_set(err, ERR_CONFIG,
                       "behind the sentinels stands /MASTER, the name that they have for the "
                       "master (letters, digits, . - _)");
    memcpy(ret->master, at + 1, n);
    at += n + 1;
    if (*at == '/' && at[1] != '\0')
        return parse_number(at + 1, 0, 1000000, &ret->db, "database", err);
    return *at == '\0' || *at == '/'
               ? 0
               : err_set(err, ERR_CONFIG, "what follows the sentinels is not /MASTER/DB");
}

/* [USER@]HOST[:PORT],…[/][0] */
static int parse_cluster(const char *at, struct url *ret, struct err *err)
{
    if (parse_list(&at, ret->nodes, "node", ret, err) < 0)
        return -1;
    return *at == '\0' || strcmp(at, "/") == 0 || strcmp(at, "/0") == 0
               ? 0
               : err_set(err, ERR_CONFIG,
                         "a cluster has one database, 0: end the address with its nodes");
}

static int parse_tcp(const char *at, struct url *ret, struct err *err)
{
    if (parse_user(&at, at + strlen(at), ret, err) < 0 || parse_place(&at, URL_PORT, ret, err) < 0)
        return -1;
    if (*at == '/' && at[1] != '\0')
        return parse_number(at + 1, 0, 1000000, &ret->db, "database", err);
    return *at == '\0' || *at == '/'
               ? 0
               : err_set(err, ERR_CONFIG, "what follows the host is not :PORT/DB");
}

static int parse_any(const char *text, struct url *ret, struct err *err)
{
    const char *query = strchr(text, '?');

    /* Other clients take ?password=. */
    if (query != NULL && strstr(query, "pass") != NULL)
        return refuse_password(err);
    if (strncmp(text, "unix:", 5) == 0)
        return parse_unix(strncmp(text, "unix://", 7) == 0 ? text + 7 : text + 5, ret, err);
    if (strncmp(text, "redis://", 8) == 0)
        return parse_tcp(text + 8, ret, err);
    if (strncmp(text, "rediss://", 9) == 0) {
        ret->is_tls = true;
        return parse_tcp(text + 9, ret, err);
    }
    if (strncmp(text, "sentinel://", 11) == 0)
        return parse_sentinel(text + 11, ret, err);
    if (strncmp(text, "sentinels://", 12) == 0) {
        ret->is_tls = true;
        return parse_sentinel(text + 12, ret, err);
    }
    if (strncmp(text, "cluster://", 10) == 0)
        return parse_cluster(text + 10, ret, err);
    if (strncmp(text, "clusters://", 11) == 0) {
        ret->is_tls = true;
        return parse_cluster(text + 11, ret, err);
    }
    return err_set(err, ERR_CONFIG,
                   "write redis://[USER@]HOST[:PORT][/DB], with TLS rediss://…, "
                   "unix:[USER@]/PATH[?db=N], sentinel://HOST[:PORT],…/MASTER[/DB], or "
                   "cluster://HOST[:PORT],…");
}

/* A refused address may hold a secret: neither what precedes its last @ is shown nor what follows
 * the first question mark. */
static int refuse(const char *text, struct err *err)
{
    const char *sign = strrchr(text, '@');
    const char *query = strchr(text, '?');
    const char *from = sign != NULL ? sign : text;
    size_t n = query != NULL && query > from ? (size_t)(query - from) : strlen(from);

    if (query != NULL && query < from)
        n = 0;
    return err_wrap(err, "redis address '%s%.*s%s'", sign != NULL ? "..." : "",
                    (int)(n < 80 ? n : 80), from, query != NULL ? "?..." : "");
}

int url_parse(const char *text, struct url *ret, struct err *err)
{
    memset(ret, 0, sizeof(*ret));
    return parse_any(text, ret, err) < 0 ? refuse(text, err) : 0;
}

void url_set_namespace(struct url *url, const char *ns)
{
    url->slot = slot_of(ns, strlen(ns));
}

bool url_is_guided(const struct url *url)
{
    return url->sentinels[0] != '\0' || url->nodes[0] != '\0';
}

/* A user without a password (nopass) needs AUTH too: else it would be the default user. */
int url_login(const struct url *url, const char *argv[3])
{
    int n = 0;

    if (url->password[0] == '\0' && url->user[0] == '\0')
        return 0;
    argv[n++] = "AUTH";
    if (url->user[0] != '\0')
        argv[n++] = url->user;
    argv[n++] = url->password;
    return n;
}

void url_set_login(struct url *url, const struct url *from)
{
    memcpy(url->user, from->user, sizeof(url->user));
    memcpy(url->password, from->password, sizeof(url->password));
}

static int set_tls_text(char *to, size_t cap, const char *text, const char *name, struct err *err)
{
    if (text != NULL && strlen(text) >= cap)
        return err_set(err, ERR_CONFIG, "%s is longer than %zu bytes", name, cap - 1);
    text_copy(to, cap, text != NULL ? text : "");
    return 0;
}

int url_set_tls(struct url *url, const char *ca, const char *cert, const char *key,
                const char *name, struct err *err)
{
    struct tls_settings *t = &url->tls;

    if (set_tls_text(t->ca, sizeof(t->ca), ca, "redis_tls_ca", err) < 0 ||
        set_tls_text(t->cert, sizeof(t->cert), cert, "redis_tls_cert", err) < 0 ||
        set_tls_text(t->key, sizeof(t->key), key, "redis_tls_key", err) < 0 ||
        set_tls_text(t->name, sizeof(t->name), name, "redis_tls_name", err) < 0)
        return -1;
    if (!url->is_tls &&
        (t->ca[0] != '\0' || t->cert[0] != '\0' || t->key[0] != '\0' || t->name[0] != '\0'))
        return err_set(err, ERR_CONFIG,
                       "settings of TLS are of no use with an address without it: write rediss:// "
                       "(sentinels://, clusters://), or take them out");
    if ((t->cert[0] == '\0') != (t->key[0] == '\0'))
        return err_set(err, ERR_CONFIG, "redis_tls_cert and redis_tls_key go together");
    return 0;
}

static int read_first_line(const char *path, mode_t refused, struct url *url, struct err *err)
{
    CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    ssize_t n;
    size_t len;

    if (fd < 0)
        return err_sys(err, errno, "password file %s", path);
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return err_set(err, ERR_CONFIG, "password file %s is not a regular file", path);
    if (st.st_uid != 0 && st.st_uid != geteuid())
        return err_set(err, ERR_DENIED,
                       "password file %s belongs to uid %u, not to root or uid %u: chown %u it",
                       path, (unsigned)st.st_uid, (unsigned)geteuid(), (unsigned)geteuid());
    if (st.st_mode & refused)
        return err_set(err, ERR_DENIED, "password file %s can be read by others: chmod 600 it",
                       path);
    n = read(fd, url->password, sizeof(url->password) - 1);
    if (n < 0)
        return err_sys(err, errno, "password file %s", path);
    url->password[n] = '\0';
    len = strcspn(url->password, "\r\n");
    explicit_bzero(url->password + len, sizeof(url->password) - len);
    if (len == 0 || len == sizeof(url->password) - 1)
        return err_set(err, ERR_CONFIG, "password file %s: its first line is empty or too long",
                       path);
    return 0;
}

int url_read_password(const char *path, struct url *url, struct err *err)
{
    return read_first_line(path, 077, url, err);
}

int url_read_credential(const char *path, struct url *url, struct err *err)
{
    return read_first_line(path, 07, url, err);
}

const char *url_show(const struct url *url, char out[320])
{
    if (url->sentinels[0] != '\0')
        (void)snprintf(out, 320, "redis '%s' by the sentinels %.220s", url->master, url->sentinels);
    else if (url->nodes[0] != '\0')
        (void)snprintf(out, 320, "the redis cluster of %.280s", url->nodes);
    else if (url->is_unix)
        (void)snprintf(out, 320, "redis at unix:%s", url->host);
    else
        (void)snprintf(out, 320,
                       strchr(url->host, ':') != NULL ? "redis at [%s]:%d" : "redis at %s:%d",
                       url->host, url->port);
    return out;
}
