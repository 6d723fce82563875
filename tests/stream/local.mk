## Stream mode: the example workers by themselves (drive.h: the daemon's side of the pipes).
stream_tests = tests/stream/test_check tests/stream/test_examples
libtests_a_SOURCES += tests/stream/drive.c tests/stream/drive.h tests/stream/examples.c \
	tests/stream/examples.h
if HAVE_CMOCKA
check_PROGRAMS += $(stream_tests)
endif
single_threaded += $(stream_tests)
## Through the built daemon, with a worker that does what a job asks for, also what none should.
stream_daemon_tests = tests/integration/test_stream tests/integration/test_stream_life
integration_tests += $(stream_daemon_tests)
tests_stream_worker_SOURCES = tests/stream/worker.c
tests_stream_worker_LDADD =
if HAVE_CMOCKA
check_PROGRAMS += tests/stream/worker
endif
## Its processes and its timer are its own; drive.c has names of the daemon's side.
tests_unit_test_stream_LDADD = $(libs) $(CMOCKA_LIBS)
