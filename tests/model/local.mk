## The model of the protocol: a program to explore it by hand, and the test that does so.
model = tests/model/calm.c tests/model/calm.h tests/model/configs.c tests/model/configs.h \
	tests/model/explore.c tests/model/explore.h tests/model/moves.c tests/model/moves.h \
	tests/model/properties.c tests/model/properties.h tests/model/state.c tests/model/state.h \
	tests/model/store.c tests/model/store.h tests/model/worker.c tests/model/worker.h
if HAVE_CMOCKA
check_PROGRAMS += tests/model/model tests/model/test_model
endif
tests_model_model_SOURCES = tests/model/main.c $(model)
tests_model_test_model_SOURCES = tests/model/test_model.c $(model)
single_threaded += tests/model/test_model
