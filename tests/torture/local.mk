## Torture: the Nth call of a kind of function fails, for every N.
preloads += tests/support/preload/torture.so
torture_support = tests/support/torture.c tests/support/torture.h
tests_torture_test_torture_SOURCES = tests/torture/test_torture.c $(torture_support)
tests_torture_test_torture_later_SOURCES = tests/torture/test_torture_later.c $(torture_support)
torture_tests = tests/torture/test_torture tests/torture/test_torture_later
if HAVE_CMOCKA
plain_programs += $(torture_tests)
endif
