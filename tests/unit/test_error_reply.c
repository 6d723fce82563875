/* The words of Redis and of Valkey for the same refusal, as the servers write them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "redis/error_reply.h"

#define BEHIND " script: later_add, on @user_function:1234."

static const struct row {
    const char *text;
    enum error_class class;
    enum err_code code;
    const char *cure;
} rows[] = {
    /* Redis 7.0 */
    {"ERR The user executing the script can't run this command or subcommand" BEHIND,
     ERROR_CLASS_DENIED, ERR_DENIED, "a right is missing"},
    {"ERR The user executing the script can't access at least one of the keys mentioned in the "
     "command arguments" BEHIND,
     ERROR_CLASS_DENIED, ERR_DENIED, "a right is missing"},
    {"ERR The user executing the script can't publish to the channel mentioned in the "
     "command" BEHIND,
     ERROR_CLASS_DENIED, ERR_DENIED, "a right is missing"},
    /* Redis 7.2, 8 and Valkey */
    {"ERR ACL failure in script: User worker has no permissions to run the 'zadd' command" BEHIND,
     ERROR_CLASS_DENIED, ERR_DENIED, "a right is missing"},
    {"ERR ACL failure in script: No permissions to access a key" BEHIND, ERROR_CLASS_DENIED,
     ERR_DENIED, "a right is missing"},
    {"ERR ACL failure in script: No permissions to access a channel" BEHIND, ERROR_CLASS_DENIED,
     ERR_DENIED, "a right is missing"},
    {"NOPERM User worker has no permissions to run the 'fcall' command", ERROR_CLASS_DENIED,
     ERR_DENIED, "a right is missing"},
    {"NOPERM No permissions to access a key", ERROR_CLASS_DENIED, ERR_DENIED, "a right is missing"},
    /* a command that rename-command took away */
    {"ERR Unknown Redis command called from script" BEHIND, ERROR_CLASS_DENIED, ERR_DENIED,
     "later setup names it"},
    {"ERR Unknown command called from script" BEHIND, ERROR_CLASS_DENIED, ERR_DENIED,
     "later setup names it"},
    {"ERR Invalid command passed to redis.acl_check_cmd()" BEHIND, ERROR_CLASS_DENIED, ERR_DENIED,
     "later setup names it"},
    {"ERR Invalid command passed to server.acl_check_cmd()" BEHIND, ERROR_CLASS_DENIED, ERR_DENIED,
     "later setup names it"},
    /* Our own codes come first, whatever their texts hold. */
    {"ELATER_TYPE that is: ACL failure in script", ERROR_CLASS_TYPE, ERR_REFUSED, ""},
    {"OOM command not allowed when used memory > 'maxmemory'.", ERROR_CLASS_FULL, ERR_UNAVAILABLE,
     "raise maxmemory"},
    {"READONLY You can't write against a read only replica.", ERROR_CLASS_MOVED, ERR_UNAVAILABLE,
     "master"},
    {"ERR something else", ERROR_CLASS_CALL, ERR_DATA, ""},
};

static void test_every_text(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct err err = ERR_INIT;

        (void)error_reply_err(&err, rows[i].text);
        if (error_reply_class(rows[i].text) != rows[i].class || err.code != rows[i].code ||
            strstr(err.text, rows[i].cure) == NULL)
            fail_msg("%s: class %d, code %d: %s", rows[i].text,
                     (int)error_reply_class(rows[i].text), (int)err.code, err.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
