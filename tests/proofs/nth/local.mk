## The Nth call of a function to Redis raises, for every N.
tests_proofs_nth_test_nth_SOURCES = tests/proofs/nth/test_nth.c
if HAVE_CMOCKA
plain_programs += tests/proofs/nth/test_nth
unsanitized += tests/proofs/nth/test_nth
endif
