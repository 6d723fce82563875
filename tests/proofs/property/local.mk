## Property tests: random calls to the function library against a model of it; hostile ones.
refusal_tests = tests/proofs/property/test_refusals tests/proofs/property/test_foreign_types \
	tests/proofs/property/test_corrupt tests/proofs/property/test_producers
property_tests = tests/proofs/property/test_property $(refusal_tests)
property_server = tests/proofs/property/server.c tests/proofs/property/server.h tests/proofs/property/model.h \
	tests/proofs/property/short.c tests/proofs/property/short.h
tests_proofs_property_test_property_SOURCES = tests/proofs/property/test_property.c tests/proofs/property/calls.c \
	tests/proofs/property/calls.h tests/proofs/property/calls_gates.c tests/proofs/property/calls_workers.c \
	tests/proofs/property/calls_chains.c tests/proofs/property/model_chains.c \
	tests/proofs/property/calls_batches.c tests/proofs/property/model_batches.c \
	tests/proofs/property/calls_bulks.c tests/proofs/property/model_bulks.c tests/proofs/property/model_purge.c tests/proofs/property/model_series.c \
	tests/proofs/property/calls_schedules.c tests/proofs/property/model_schedules.c \
	tests/proofs/property/calls_topics.c tests/proofs/property/model_topics.c \
	tests/proofs/property/calls_foreign.c tests/proofs/property/model_foreign.c \
	tests/proofs/property/calls_broadcast.c tests/proofs/property/model_broadcast.c \
	tests/proofs/property/calls_overview.c tests/proofs/property/model_overview.c \
	tests/proofs/property/calls_resume.c tests/proofs/property/model_resume.c \
	tests/proofs/property/maker.c \
	tests/proofs/property/maker.h tests/proofs/property/model.c tests/proofs/property/model_public.c \
	tests/proofs/property/model_gates.c tests/proofs/property/model_gates.h tests/proofs/property/model_waiters.c \
	tests/proofs/property/model_fair.c tests/proofs/property/model_fair.h tests/proofs/property/model_lock.c tests/proofs/property/model_promises.c tests/proofs/property/model_unique.c \
	tests/proofs/property/rows.c tests/proofs/property/rows.h \
	tests/proofs/property/model_render.c tests/proofs/property/model_list.c tests/proofs/property/model_results.c \
	tests/proofs/property/model_sync.c tests/proofs/property/model_worker.c \
	$(property_server)
tests_proofs_property_test_property_LDADD = $(LDADD) -lm
if HAVE_CMOCKA
plain_programs += $(property_tests)
endif
unsanitized += $(property_tests)
