## Fuzzing: runs the targets on the corpus, without a fuzzer (scripts/fuzz runs one).
tests_fuzz_test_corpus_SOURCES = tests/fuzz/test_corpus.c tests/fuzz/fuzz.h tests/fuzz/fuzz_conf.c \
	tests/fuzz/fuzz_step.c tests/fuzz/fuzz_control.c tests/fuzz/fuzz_env.c tests/fuzz/fuzz_head.c tests/fuzz/fuzz_job.c \
	tests/fuzz/fuzz_output.c tests/fuzz/fuzz_replies.c tests/fuzz/fuzz_text.c
quick_tests += tests/fuzz/test_corpus
if HAVE_CMOCKA
test_programs += tests/fuzz/test_corpus
endif
tests_fuzz_test_corpus_LDADD = liblaterweb.a $(LDADD)
