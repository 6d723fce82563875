/*
 * As root, laterd refuses a configuration or a password file if others can write on the path to it,
 * since they could put another file there. It names the file, its owner or mode, and the cure.
 * Needs root; skipped without.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../support/env.h"
#include "../support/shell.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "fixture.h"

#define LONG_MS 60000
#define EXIT_SKIPPED 77

/* laterd refuses this file, at the start and when it only checks it. Exit status 77: the file is
 * the reason; 78: the configuration is. */
static void must_refuse(const char *file, const char *says)
{
    CLEANUP_FREE char *check =
        mem_printf("$LATERD --config %s --check-config; s=$?; [ $s = 77 ] || [ $s = 78 ]", file);
    CLEANUP_FREE char *run =
        mem_printf("timeout 20 $LATERD --config %s; s=$?; [ $s = 77 ] || [ $s = 78 ]", file);

    test_says(check, 0, says);
    test_says(run, 0, says);
}

static void sh(const char *line)
{
    test_says(line, 0, "");
}

static void test_folders_of_the_configuration(void **state)
{
    (void)state;
    test_handler(dir, "mail", "true");
    test_laterd_conf(&a, dir, "a", redis.url, "");
    sh("mkdir $DIR/etc && cp $DIR/a.yaml $DIR/etc/ && ln -s $DIR/etc/a.yaml $DIR/link.yaml");
    sh("$LATERD --config $DIR/etc/a.yaml --check-config");
    sh("chmod 777 $DIR/etc");
    must_refuse("$DIR/etc/a.yaml", "etc can be written by others (mode 0777): chmod go-w");
    must_refuse("$DIR/link.yaml", "etc can be written by others");
    sh("cd $DIR/etc && ! $LATERD --config a.yaml --check-config");
    sh("chmod 1777 $DIR/etc && $LATERD --config $DIR/etc/a.yaml --check-config");
    sh("chmod 755 $DIR/etc && chown nobody $DIR/etc");
    must_refuse("$DIR/etc/a.yaml", "belongs to uid 65534, not to root");
    sh("chown root $DIR/etc && chmod 664 $DIR/etc/a.yaml");
    must_refuse("$DIR/etc/a.yaml", "can be written by others: chmod go-w");
    sh("chmod 644 $DIR/etc/a.yaml && chown nobody $DIR/etc/a.yaml");
    must_refuse("$DIR/etc/a.yaml", "belongs to user 65534, not to root");
    sh("chown -h nobody $DIR/link.yaml; chown root $DIR/etc/a.yaml");
    must_refuse("$DIR/link.yaml", "link.yaml belongs to uid 65534");
}

static void test_password_file(void **state)
{
    CLEANUP_FREE char *yaml = mem_printf("redis_password_file: %s/pw/redis\n", dir);

    (void)state;
    sh("mkdir $DIR/pw && echo secret >$DIR/pw/redis && chmod 600 $DIR/pw/redis");
    test_laterd_conf(&a, dir, "a", redis.url, yaml);
    sh("$LATERD --config $DIR/a.yaml --check-config");
    sh("chmod 640 $DIR/pw/redis");
    must_refuse("$DIR/a.yaml", "can be read by others: chmod 600 it");
    sh("chmod 600 $DIR/pw/redis && chown nobody $DIR/pw/redis");
    must_refuse("$DIR/a.yaml", "belongs to uid 65534");
    sh("chown root $DIR/pw/redis && chmod 775 $DIR/pw");
    must_refuse("$DIR/a.yaml", "pw can be written by others");
    must_refuse("$DIR/a.yaml", "redis_password_file");
}

/* Permissions that went wrong after the start keep a reload from taking effect. */
static void test_reload(void **state)
{
    (void)state;
    test_handler(dir, "mail", "true");
    sh("mkdir $DIR/etc");
    start_a("");
    sh("chmod 777 $DIR");
    test_laterd_kill(&a, SIGHUP);
    assert_true(test_laterd_says(&a, "event=reload result=refused", LONG_MS));
    assert_true(test_lines(a.log, "can be written by others (mode 0777)") > 0);
    sh("chmod 755 $DIR");
    test_laterd_kill(&a, SIGHUP);
    assert_true(test_laterd_says(&a, "event=reload result=done", LONG_MS));
}

/* Whoever is not in the group of a socket or of a file is told which one, and how to get into it.
 */
static void test_user_outside_the_group(void **state)
{
    CLEANUP_FREE char *conf = mem_printf("redis: unix:%s/r/s\n", dir);
    CLEANUP_FREE char *eve =
        mem_printf("setpriv --reuid=65534 --regid=65534 --clear-groups %s/later", dir);

    (void)state;
    (void)setenv("AS_EVE", eve, 1);
    (void)setenv("CONF", conf, 1);
    sh("chmod 755 $DIR && cp $LATER $DIR/later && mkdir $DIR/r && printf %s \"$CONF\" "
       ">$DIR/c.yaml");
    sh("python3 -c \"import os,socket; "
       "socket.socket(socket.AF_UNIX).bind(os.environ['DIR']+'/r/s')\""
       " && chgrp daemon $DIR/r/s $DIR/c.yaml $DIR/r && chmod 770 $DIR/r/s");
    test_says("$AS_EVE --config $DIR/c.yaml stats", 69,
              "Permission denied: members of group daemon may: usermod -aG daemon nobody, then log "
              "in again");
    sh("chmod 750 $DIR/r");
    test_says("$AS_EVE --config $DIR/c.yaml stats", 69, "usermod -aG daemon nobody");
    sh("chmod 700 $DIR/r");
    test_says("$AS_EVE --config $DIR/c.yaml stats", 69, "only user root may open");
    sh("chmod 755 $DIR/r && rm $DIR/r/s");
    test_says("$AS_EVE --config $DIR/c.yaml stats", 69, "start that server");
    sh("chmod 640 $DIR/c.yaml");
    test_says("$AS_EVE --config $DIR/c.yaml stats", 77, "usermod -aG daemon nobody");
}

static int setup(void **state)
{
    CLEANUP_FREE char *laterd = mem_printf("%s/laterd", test_build_dir());

    CLEANUP_FREE char *later = mem_printf("%s/later", test_build_dir());

    (void)setenv("LATERD", laterd, 1);
    (void)setenv("LATER", later, 1);
    if (fx_open(state) != 0)
        return -1;
    (void)setenv("DIR", dir, 1);
    return 0;
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, fx_close)

int main(void)
{
    const struct CMUnitTest tests[] = {T(test_folders_of_the_configuration), T(test_password_file),
                                       T(test_reload), T(test_user_outside_the_group)};

    if (geteuid() != 0) {
        print_message("needs root: skipped\n");
        return EXIT_SKIPPED;
    }
    cmocka_set_test_filter(getenv("LATER_ONLY")); /* a name, with * and ? */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
