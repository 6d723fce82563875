/*
 * A Redis Cluster that is spoken to by TLS: the owner is found and followed, and what does not fit
 * has its sentence.
 */
#include "cluster_fixture.h"

#include "../support/certs.h"

static char certs[64]; /* folder */

static int open_with_tls(void **state)
{
    CLEANUP_FREE char *ca = NULL;

    test_folder_make(certs);
    assert_int_equal(certs_make(certs), 0);
    ca = mem_printf("%s/ca.crt", certs);
    assert_int_equal(setenv("LATER_TEST_TLS", certs, 1), 0);
    assert_int_equal(setenv("SSL_CERT_FILE", ca, 1), 0);
    return open_cluster(state);
}

static int close_with_tls(void **state)
{
    test_folder_remove(certs);
    return close_cluster(state);
}

static void test_it_works_moves_and_fails_over(void **state)
{
    int told, killed;

    (void)state;
    assert_non_null(strstr(c.by, "clusters://"));
    start(0, "default");
    must("default", "$L add work --wait x", "");
    (void)cluster_move(&c, "default", next_primary(cluster_owner(&c, 0, "default")), 300);
    must("default", "$L add work --wait x", "");
    told = test_lines(d[0].log, "event=link state=up");
    killed = cluster_fail(&c, "default");
    assert_true(test_until_lines(d[0].log, "event=link state=up", told + 1, LONG_MS));
    must("default", "$L add work --wait x", "");
    must("default", "$L health --server", "TLSv1.3");
    must("default", "$L fsck", "");
    cluster_heal(&c, killed);
}

static void test_each_fault_has_its_sentence(void **state)
{
    CLEANUP_FREE char *no_tls = mem_printf(
        "$LATER --redis clusters://127.0.0.1:%s stats; s=$?; [ $s -ne 78 ] || s=69; exit $s",
        c.nodes[0].port);
    CLEANUP_FREE char *strange =
        mem_printf("SSL_CERT_FILE=/dev/null $LATER --redis $BY --tls-ca %s/other.crt stats", certs);

    (void)state;
    test_says("$LATER --redis $BY stats", 0, "");
    test_says(no_tls, 69, "in place of rediss://");
    test_says(strange, 78, "CA");
    test_says("$LATER --redis cluster://127.0.0.1:1 --tls-ca x stats", 78, "clusters://");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_it_works_moves_and_fails_over, stop_daemons),
        cmocka_unit_test(test_each_fault_has_its_sentence),
    };

    cmocka_set_test_filter(getenv("LATER_ONLY")); /* a name, with * and ? */
    return cmocka_run_group_tests(tests, open_with_tls, close_with_tls);
}
