## Stream mode: the example workers by themselves (drive.h: the daemon's side of the pipes).
stream_tests = tests/handlers/test_check tests/handlers/test_examples
libtests_a_SOURCES += tests/handlers/drive.c tests/handlers/drive.h tests/handlers/examples.c \
	tests/handlers/examples.h
if HAVE_CMOCKA
plain_programs += $(stream_tests)
endif
unsanitized += $(stream_tests)
## Stream mode through the built daemon, with a worker that does what a job asks for, even what no worker should do.
stream_daemon_tests = tests/integration/test_stream tests/integration/test_stream_life
tests_handlers_worker_SOURCES = tests/handlers/worker.c
tests_handlers_worker_LDADD =
if HAVE_CMOCKA
check_PROGRAMS += tests/handlers/worker
endif
## Not linked with libtests: it has processes and a timer of its own, and drive.c uses names of the daemon's side.
tests_unit_test_stream_LDADD = $(libs) $(CMOCKA_LIBS)
