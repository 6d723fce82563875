/* The address of Redis: what is accepted, what is refused with a cure; no password is shown. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "redis/url.h"

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static void test_taken(void **state)
{
    static const struct {
        const char *text;
        bool is_unix;
        const char *host;
        int port, db;
        const char *user, *shown;
    } rows[] = {
        {"redis://127.0.0.1", false, "127.0.0.1", 6379, 0, "", "redis at 127.0.0.1:6379"},
        {"redis://127.0.0.1/", false, "127.0.0.1", 6379, 0, "", "redis at 127.0.0.1:6379"},
        {"redis://h.example:1/15", false, "h.example", 1, 15, "", "redis at h.example:1"},
        {"redis://h:65535", false, "h", 65535, 0, "", "redis at h:65535"},
        {"redis://[::1]:6380/2", false, "::1", 6380, 2, "", "redis at [::1]:6380"},
        {"redis://[fe80::1]", false, "fe80::1", 6379, 0, "", "redis at [fe80::1]:6379"},
        {"redis://worker@h:7", false, "h", 7, 0, "worker", "redis at h:7"},
        {"sentinel://h1:26380,h2,[::1]:7/mymaster/3", false, "", 0, 3, "",
         "redis 'mymaster' by the sentinels h1:26380,h2,[::1]:7"},
        {"sentinels://w@h/m-1.x", false, "", 0, 0, "w", "redis 'm-1.x' by the sentinels h"},
        {"cluster://h", false, "", 0, 0, "", "the redis cluster of h"},
        {"cluster://h1:7000,h2,[::1]:7/", false, "", 0, 0, "",
         "the redis cluster of h1:7000,h2,[::1]:7"},
        {"cluster://worker@h1,h2/0", false, "", 0, 0, "worker", "the redis cluster of h1,h2"},
        {"clusters://w@h:1", false, "", 0, 0, "w", "the redis cluster of h:1"},
        {"unix:/run/redis.sock", true, "/run/redis.sock", 0, 0, "",
         "redis at unix:/run/redis.sock"},
        {"unix:///run/r.sock?db=3", true, "/run/r.sock", 0, 3, "", "redis at unix:/run/r.sock"},
        {"unix:worker@/r.sock", true, "/r.sock", 0, 0, "worker", "redis at unix:/r.sock"},
        {"unix:worker@/r.sock?db=3", true, "/r.sock", 0, 3, "worker", "redis at unix:/r.sock"},
        {"unix://worker@/r.sock?db=3", true, "/r.sock", 0, 3, "worker", "redis at unix:/r.sock"},
        /* An @ in a path is no end of a user, and a colon there no password. */
        {"unix:/run/a@b.sock", true, "/run/a@b.sock", 0, 0, "", "redis at unix:/run/a@b.sock"},
        {"unix:/a:b@c", true, "/a:b@c", 0, 0, "", "redis at unix:/a:b@c"},
        {"unix:w@/a:b@c", true, "/a:b@c", 0, 0, "w", "redis at unix:/a:b@c"},
        {"unix:///a@b?db=1", true, "/a@b", 0, 1, "", "redis at unix:/a@b"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct err err = ERR_INIT;
        struct url url;
        char shown[320];

        if (url_parse(rows[i].text, &url, &err) < 0)
            fail_msg("%s: %s", rows[i].text, err.text);
        assert_int_equal(url.is_unix, rows[i].is_unix);
        assert_string_equal(url.host, rows[i].host);
        assert_int_equal(url.port, rows[i].port);
        assert_int_equal(url.db, rows[i].db);
        assert_string_equal(url.user, rows[i].user);
        assert_string_equal(url.password, "");
        assert_string_equal(url_show(&url, shown), rows[i].shown);
        assert_int_equal(url.is_tls, begins(rows[i].text, "rediss:") ||
                                         begins(rows[i].text, "sentinels:") ||
                                         begins(rows[i].text, "clusters:"));
        assert_int_equal(url.nodes[0] != '\0', begins(rows[i].text, "cluster"));
        assert_int_equal(url_is_guided(&url), url.host[0] == '\0');
    }
}

/* What is refused, and what is said of it. */
static const struct {
    const char *text, *says;
} refused[] = {
    {"", "write redis://"},
    {"127.0.0.1:6379", "write redis://"},
    {"http://h", "write redis://"},
    {"REDIS://h", "write redis://"},
    {"rediss://u:secret@h:6379", "redis_password_file"},
    {"rediss://", "empty or too long"},
    {"rediss:h", "write redis://"},
    {"redis://", "empty or too long"},
    {"redis:///3", "empty or too long"},
    {"redis://h,h2:1", "what follows"},
    {"sentinel://", "empty or too long"},
    {"sentinel:///m", "empty or too long"},
    {"sentinel://h", "/MASTER"},
    {"sentinel://h/", "/MASTER"},
    {"sentinel://h//1", "/MASTER"},
    {"sentinel://h,/m", "behind the last comma"},
    {"sentinel://,h/m", "empty or too long"},
    {"sentinel://h,,h2/m", "empty or too long"},
    {"sentinel://h:0/m", "port"},
    {"sentinel://h:1x,h2/m", "port"},
    {"sentinel://[::1]x/m", "a comma"},
    {"sentinel://h/m/x", "database"},
    {"sentinel://h/m?db=1", "/MASTER/DB"},
    {"sentinel://h/m m", "/MASTER/DB"},
    {"sentinel://u:secret@h/m", "redis_password_file"},
    {"sentinels://h/m?password=secret", "redis_password_file"},
    {"cluster:h", "write redis://"},
    {"cluster://", "empty or too long"},
    {"cluster:///0", "empty or too long"},
    {"cluster://@h", "empty or too long"},
    {"cluster://h,", "behind the last comma"},
    {"cluster://h,/0", "behind the last comma"},
    {"cluster://,h", "empty or too long"},
    {"cluster://h,,h2", "empty or too long"},
    {"cluster://h:0,h2", "port"},
    {"cluster://h:1x", "port"},
    {"cluster://[::1]x", "a comma"},
    {"cluster://h/1", "one database, 0"},
    {"cluster://h/00", "one database, 0"},
    {"clusters://h,h2/15", "one database, 0"},
    {"cluster://h/0/0", "one database, 0"},
    {"cluster://h?db=1", "one database, 0"},
    {"cluster://u:secret@h", "redis_password_file"},
    {"cluster://:secret@h,h2", "redis_password_file"},
    {"clusters://u:se@cret@h1,h2", "redis_password_file"},
    {"clusters://h/0?password=secret", "redis_password_file"},
    {"redis://:6379", "empty or too long"},
    {"redis://h:", "empty or too long"},
    {"redis://h:0", "port"},
    {"redis://h:65536", "port"},
    {"redis://h:-1", "port"},
    {"redis://h:6379x", "port"},
    {"redis://h:99999999999", "too long"},
    {"redis://h/x", "database"},
    {"redis://h/-1", "database"},
    {"redis://h/1/2", "database"},
    {"redis://[::1", "]"},
    {"redis://[]", "empty or too long"},
    {"redis://[::1]x", "what follows"},
    {"redis://@h", "empty or too long"},
    {"redis://user:secret@h", "redis_password_file"},
    {"redis://:secret@h", "redis_password_file"},
    {"redis://user:se@cret@h:1", "redis_password_file"},
    {"redis://user:secret@", "redis_password_file"},
    {"http://user:secret@h", "write redis://"},
    {"unix:", "start with /"},
    {"unix:redis.sock", "start with /"},
    {"unix:?db=1", "start with /"},
    {"unix:/r.sock?db=", "database"},
    {"unix:/r.sock?db=x", "database"},
    {"unix:worker@", "start with /"},
    {"unix:worker@r.sock", "start with /"},
    {"unix:@/r.sock", "empty or too long"},
    {"unix://@/r.sock", "empty or too long"},
    {"unix:a@b@/r.sock", "start with /"},
    {"unix:/r.sock?", "not ?db=N"},
    {"unix:/r.sock?user=worker", "not ?db=N"},
    {"unix:/r.sock?db=1&user=w", "database"},
    {"unix:worker:secret@/r.sock", "redis_password_file"},
    {"unix::secret@/r.sock", "redis_password_file"},
    {"unix://worker:secret@/r.sock?db=1", "redis_password_file"},
    {"unix:worker:sec/secret@/r.sock", "start with /"},
    {"unix:worker:secret?x@/r.sock", "redis_password_file"},
    {"unix:/r.sock?password=secret", "redis_password_file"},
    {"unix:///r.sock?db=0&password=secret", "redis_password_file"},
    {"unix:/r.sock?pass=secret&db=1", "redis_password_file"},
    {"redis://h/0?password=secret", "redis_password_file"},
    {"redis://h?password=secret", "redis_password_file"},
    {"redis://h?db=1", "what follows"},
    {"redis://h/0?x=secret", "database"},
    {"redis://h:1?password=secret@x", "redis_password_file"},
    {"http://h?x=secret", "write redis://"},
};

static void test_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        struct err err = ERR_INIT;
        struct url url;

        assert_int_equal(url_parse(refused[i].text, &url, &err), -1);
        assert_int_equal(err.code, ERR_CONFIG);
        if (strstr(err.text, refused[i].says) == NULL)
            fail_msg("%s: %s", refused[i].text, err.text);
        assert_null(strstr(err.text, "secret"));
        assert_null(strstr(err.text, "se@cret"));
    }
}

static void test_long_parts(void **state)
{
    static const char *const heads[] = {"redis://",     "redis://u@",   "redis://[",
                                        "unix:/",       "redis://h:",   "redis://h/",
                                        "cluster://",   "cluster://h,", "cluster://u@",
                                        "clusters://h:"};
    char text[4096];

    (void)state;
    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
        struct err err = ERR_INIT;
        struct url url;

        memset(text, '1', sizeof(text));
        memcpy(text, heads[i], strlen(heads[i]));
        text[sizeof(text) - 1] = '\0';
        assert_int_equal(url_parse(text, &url, &err), -1);
        memset(text, 'u', sizeof(text));
        memcpy(text, "redis://", 8);
        memcpy(text + sizeof(text) - 4, "@hh", 4);
        assert_int_equal(url_parse(text, &url, &err), -1);
    }
    memset(text, 's', sizeof(text));
    memcpy(text, "unix:/", 6);
    text[5 + 107] = '\0';
    assert_int_equal(url_parse(text, &(struct url){0}, NULL), 0);
    text[5 + 107] = 's';
    text[5 + 108] = '\0';
    assert_int_equal(url_parse(text, &(struct url){0}, NULL), -1);
}

/* A password file that lives in memory only. */
static int read_password(const char *content, size_t n, mode_t mode, struct url *url,
                         struct err *err)
{
    char path[64];
    int fd = memfd_create("password", MFD_CLOEXEC), rc;

    assert_true(fd >= 0);
    assert_int_equal(write(fd, content, n), n);
    assert_int_equal(fchmod(fd, mode), 0);
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    memset(url, 0, sizeof(*url));
    rc = url_read_password(path, url, err);
    assert_int_equal(close(fd), 0);
    return rc;
}

static void test_password_file(void **state)
{
    static const struct {
        const char *content, *want; /* want NULL: refused */
        mode_t mode;
        enum err_code code;
    } rows[] = {
        {"s3cret\n", "s3cret", 0600, ERR_NONE},
        {"s3cret", "s3cret", 0400, ERR_NONE},
        {"s3 cret\r\nsecond", "s3 cret", 0600, ERR_NONE},
        {"s3cret\n", NULL, 0640, ERR_DENIED},
        {"s3cret\n", NULL, 0604, ERR_DENIED},
        {"s3cret\n", NULL, 0620, ERR_DENIED},
        {"s3cret\n", NULL, 0777, ERR_DENIED},
        {"", NULL, 0600, ERR_CONFIG},
        {"\ns3cret", NULL, 0600, ERR_CONFIG},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct err err = ERR_INIT;
        struct url url;
        int rc = read_password(rows[i].content, strlen(rows[i].content), rows[i].mode, &url, &err);

        assert_int_equal(rc, rows[i].want != NULL ? 0 : -1);
        assert_int_equal(err.code, rows[i].code);
        assert_null(strstr(err.text, "s3cret"));
        if (rows[i].want != NULL)
            assert_string_equal(url.password, rows[i].want);
    }
}

/* systemd gives the service a right of its own to the file, which shows as one of the group. */
static void test_credential(void **state)
{
    struct err err = ERR_INIT;
    struct url url = {0};
    char path[64];
    int fd = memfd_create("credential", MFD_CLOEXEC);

    (void)state;
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    assert_int_equal(write(fd, "s3cret\n", 7), 7);
    assert_int_equal(fchmod(fd, 0440), 0);
    assert_int_equal(url_read_credential(path, &url, &err), 0);
    assert_string_equal(url.password, "s3cret");
    assert_int_equal(fchmod(fd, 0444), 0);
    assert_int_equal(url_read_credential(path, &url, &err), -1);
    assert_int_equal(err.code, ERR_DENIED);
    assert_int_equal(close(fd), 0);
}

static void test_password_length(void **state)
{
    char content[2000];
    struct url url;

    (void)state;
    memset(content, 'x', sizeof(content));
    assert_int_equal(read_password(content, sizeof(content), 0600, &url, NULL), -1);
    assert_int_equal(read_password(content, 511, 0600, &url, NULL), -1);
    assert_int_equal(read_password(content, 510, 0600, &url, NULL), 0);
    /* Only the first line counts, however long the file is, and nothing else of it is kept. */
    content[10] = '\n';
    assert_int_equal(read_password(content, sizeof(content), 0600, &url, NULL), 0);
    assert_string_equal(url.password, "xxxxxxxxxx");
    for (size_t i = 10; i < sizeof(url.password); i++)
        assert_int_equal(url.password[i], 0);
}

static void test_password_no_file(void **state)
{
    struct err err = ERR_INIT;
    struct url url = {0};

    (void)state;
    assert_int_equal(url_read_password("/proc/self/no-such-file", &url, &err), -1);
    assert_non_null(strstr(err.text, "no-such-file"));
    assert_int_equal(url_read_password("/dev/null", &url, &err), -1);
    assert_int_equal(err.code, ERR_CONFIG);
    assert_int_equal(url_read_password("/proc", &url, &err), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_taken),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_long_parts),
        cmocka_unit_test(test_password_file),
        cmocka_unit_test(test_credential),
        cmocka_unit_test(test_password_length),
        cmocka_unit_test(test_password_no_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
