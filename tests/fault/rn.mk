## Redis and the network, broken: the fault proxy and the tests of sections 2.1 and 2.2.
rn_tests = tests/fault/test_addresses tests/fault/test_away tests/fault/test_frozen \
	tests/fault/test_kills tests/fault/test_lost_replies \
	tests/fault/test_network tests/fault/test_refusals tests/fault/test_slow_links
if HAVE_CMOCKA
check_PROGRAMS += $(rn_tests) tests/fault/proxy
endif
faults_tests += $(rn_tests)
preloads += tests/preload/shortwrite.so
scene = tests/fault/proxy_client.c tests/fault/proxy_client.h tests/fault/scene.c \
	tests/fault/scene.h
tests_fault_proxy_SOURCES = tests/fault/proxy.c
tests_fault_test_lost_replies_SOURCES = tests/fault/test_lost_replies.c $(scene)
tests_fault_test_network_SOURCES = tests/fault/test_network.c $(scene)
tests_fault_test_addresses_SOURCES = tests/fault/test_addresses.c $(scene)
tests_fault_test_slow_links_SOURCES = tests/fault/test_slow_links.c $(scene)
tests_fault_test_refusals_SOURCES = tests/fault/test_refusals.c $(scene)
tests_fault_test_kills_SOURCES = tests/fault/test_kills.c $(scene)
tests_fault_test_away_SOURCES = tests/fault/test_away.c $(scene)
tests_fault_test_frozen_SOURCES = tests/fault/test_frozen.c $(scene)
