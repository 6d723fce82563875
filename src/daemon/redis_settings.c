#include "daemon/redis_settings.h"

#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "redis/announce.h"
#include "redis/sentinel.h"
#include "run/handler/perms.h"
#include "worker/password.h"

int redis_settings_address(const struct conf *conf, struct url *ret, struct err *err)
{
    if (strcmp(conf->redis, "embedded") == 0)
        return 0;
    if (url_parse(conf->redis, ret, err) < 0)
        return conf_blame(conf, NULL, "redis", err);
    if (url_set_tls(ret, conf->redis_tls_ca, conf->redis_tls_cert, conf->redis_tls_key,
                    conf->redis_tls_name, err) < 0)
        return conf_blame(conf, NULL, "redis_tls_ca", err);
    return 0;
}

int redis_settings_password(const struct conf *conf, struct url *ret, struct err *err)
{
    bool is_command = conf->redis_password_command.n > 0;

    if (strcmp(conf->redis, "embedded") == 0)
        return 0;
    if (is_command && conf->redis_password_file[0] != '\0') {
        (void)err_set(err, ERR_CONFIG,
                      "redis_password_file and redis_password_command: give one of the two");
        return conf_blame(conf, NULL, "redis_password_command", err);
    }
    password_use(conf->redis_password_file, conf->redis_password_command.at);
    ret->ask_password = password_ask;
    sentinel_use(conf->sentinel_user, conf->sentinel_password_file);
    if (announce_use(conf->announce.at, err) < 0)
        return conf_blame(conf, NULL, "announce", err);
    if (is_command || password_ask(ret, err) >= 0)
        return 0;
    return conf_blame(conf, NULL, "redis_password_file", err);
}

/* Check who may change the path to a file, or the file. path: "" for none. */
static int check_way(const char *path, struct err *err)
{
    CLEANUP_FREE char *here = path[0] == '/' || path[0] == '\0' ? NULL : getcwd(NULL, 0);
    CLEANUP_FREE char *whole =
        mem_printf("%s%s%s", here != NULL ? here : "", here != NULL ? "/" : "", path);

    return path[0] == '\0' ? 0 : perms_check(whole, err);
}

int redis_settings_check_files(const struct conf *conf, struct err *err)
{
    if (geteuid() != 0)
        return 0;
    if (conf->path != NULL && check_way(conf->path, err) < 0)
        return err_wrap(err, "the configuration");
    if (strcmp(conf->redis, "embedded") != 0 && check_way(conf->redis_password_file, err) < 0) {
        (void)err_wrap(err, "redis_password_file");
        return conf_blame(conf, NULL, "redis_password_file", err);
    }
    if (check_way(conf->sentinel_password_file, err) < 0) {
        (void)err_wrap(err, "sentinel_password_file");
        return conf_blame(conf, NULL, "sentinel_password_file", err);
    }
    if (conf->redis_password_command.n > 0 &&
        check_way(conf->redis_password_command.at[0], err) < 0) {
        (void)err_wrap(err, "redis_password_command");
        return conf_blame(conf, NULL, "redis_password_command", err);
    }
    return 0;
}
