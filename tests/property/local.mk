## Property tests: random calls to the function library against a model of it; hostile ones.
property_tests = tests/property/test_property tests/property/test_refusals
property_server = tests/property/server.c tests/property/server.h tests/property/model.h \
	tests/property/short.c tests/property/short.h
tests_property_test_property_SOURCES = tests/property/test_property.c tests/property/calls.c \
	tests/property/calls.h tests/property/calls_gates.c tests/property/calls_workers.c \
	tests/property/maker.c \
	tests/property/maker.h tests/property/model.c tests/property/model_public.c \
	tests/property/model_gates.c tests/property/model_gates.h tests/property/model_line.c \
	tests/property/model_lock.c tests/property/model_promises.c tests/property/model_unique.c \
	tests/property/rows.c tests/property/rows.h \
	tests/property/model_render.c tests/property/model_list.c tests/property/model_results.c \
	tests/property/model_step.c tests/property/model_worker.c \
	$(property_server)
tests_property_test_property_LDADD = $(LDADD) -lm
if HAVE_CMOCKA
plain_programs += $(property_tests)
endif
unsanitized += $(property_tests)
