## Faults of handlers, payloads and producers, and of the host.
libtests_a_SOURCES += tests/fault/watched.c tests/fault/watched.h
hps_faults = tests/fault/test_handlers tests/fault/test_host tests/fault/test_output \
	tests/fault/test_payloads tests/fault/test_terminal
if HAVE_CMOCKA
check_PROGRAMS += $(hps_faults)
endif
faults_tests += $(hps_faults)
preloads += tests/preload/slow_clock.so
