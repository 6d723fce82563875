## The fault suite: one program for each subject. A test is named after its entry in catalogue.txt.
libtests_a_SOURCES += tests/fault/ledger.c tests/fault/ledger.h tests/fault/network.c \
	tests/fault/network.h tests/fault/proxy_client.c tests/fault/proxy_client.h tests/fault/stage.c \
	tests/fault/stage.h tests/fault/usage.c tests/fault/usage.h \
	tests/fault/watched.c tests/fault/watched.h
## The longest ones begin.
fault_tests = tests/fault/test_rights tests/fault/test_web_kills tests/fault/test_locks tests/fault/test_kills \
	tests/fault/test_handlers tests/fault/test_schedules tests/fault/test_library tests/fault/test_payloads \
	tests/fault/test_slow_links tests/fault/test_time tests/fault/test_frozen tests/fault/test_host \
	tests/fault/test_away tests/fault/test_errors tests/fault/test_lost_replies tests/fault/test_kill \
	tests/fault/test_network tests/fault/test_life tests/fault/test_silence tests/fault/test_orphans \
	tests/fault/test_counts tests/fault/test_addresses tests/fault/test_leaks tests/fault/test_output \
	tests/fault/test_adoption tests/fault/test_ledger tests/fault/test_terminal
if HAVE_CMOCKA
plain_programs += $(fault_tests)
check_PROGRAMS += tests/fault/ledger_handler tests/fault/proxy
endif
faults_tests += $(torture_tests) $(fault_tests)
tests_fault_ledger_handler_LDADD =
preloads += tests/support/preload/point.so tests/support/preload/shortwrite.so tests/support/preload/slow_clock.so tests/support/preload/slow_fsync.so
