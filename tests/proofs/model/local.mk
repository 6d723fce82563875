## The model of the protocol: a program to explore it by hand, and the test that does so.
model = tests/proofs/model/calm.c tests/proofs/model/calm.h tests/proofs/model/configs.c tests/proofs/model/configs.h \
	tests/proofs/model/explore.c tests/proofs/model/explore.h tests/proofs/model/moves.c tests/proofs/model/moves.h \
	tests/proofs/model/properties.c tests/proofs/model/properties.h tests/proofs/model/state.c tests/proofs/model/state.h \
	tests/proofs/model/store.c tests/proofs/model/store.h tests/proofs/model/worker.c tests/proofs/model/worker.h
if HAVE_CMOCKA
test_programs += tests/proofs/model/model tests/proofs/model/test_model
endif
tests_proofs_model_model_SOURCES = tests/proofs/model/main.c $(model)
tests_proofs_model_test_model_SOURCES = tests/proofs/model/test_model.c $(model)
