/*
 * From the settings that say where Redis is to an address and a password. 0, or -1 with code CONFIG
 * or DENIED and the line of the setting. An embedded server has neither: *ret stays as it is.
 */
#ifndef LATER_DAEMON_REDIS_SETTINGS_H
#define LATER_DAEMON_REDIS_SETTINGS_H

#include "base/err.h"
#include "conf/conf.h"
#include "redis/url.h"

int redis_settings_address(const struct conf *conf, struct url *ret, struct err *err);

/* Each connect asks for the password, and with sentinels for theirs; a password file of Redis that
 * cannot be read is told here already. */
int redis_settings_password(const struct conf *conf, struct url *ret, struct err *err);

/* When we run as root, anybody who can replace our configuration, password file or the program that
 * prints the password can become root, so only root may be able to. Whether the files themselves
 * are safe is checked when they are read. */
int redis_settings_check_files(const struct conf *conf, struct err *err);

#endif
