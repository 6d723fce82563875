## Faults of the daemon's life and of time, and the ledger that all of them are counted with.
libtests_a_SOURCES += tests/fault/ledger.c tests/fault/ledger.h tests/fault/stage.c \
	tests/fault/stage.h
if HAVE_CMOCKA
check_PROGRAMS += $(life_tests) tests/fault/ledger_handler
endif
life_tests = tests/fault/test_kill tests/fault/test_leaks tests/fault/test_ledger tests/fault/test_life \
	tests/fault/test_silence tests/fault/test_time
faults_tests += $(life_tests)
tests_fault_ledger_handler_LDADD =
preloads += tests/preload/point.so
