## The Nth call of a function to Redis raises, for every N.
tests_nth_test_nth_SOURCES = tests/nth/test_nth.c
if HAVE_CMOCKA
plain_programs += tests/nth/test_nth
unsanitized += tests/nth/test_nth
endif
