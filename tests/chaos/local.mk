## Chaos: random calls, foreign keys, dying workers and a jumping clock, judged by what always holds.
tests_chaos_test_chaos_SOURCES = tests/chaos/test_chaos.c tests/chaos/arena.c tests/chaos/arena.h \
	tests/chaos/audit.c tests/chaos/audit.h tests/chaos/call.c tests/chaos/call.h \
	tests/chaos/dice.c tests/chaos/dice.h tests/chaos/drain.c tests/chaos/drain.h \
	tests/chaos/judge.c tests/chaos/judge.h tests/chaos/ledger.c tests/chaos/ledger.h \
	tests/chaos/moves.c tests/chaos/moves.h tests/chaos/moves_foreign.c \
	tests/chaos/moves_gates.c tests/chaos/moves_jobs.c tests/chaos/moves_step.c \
	tests/chaos/moves_workers.c tests/chaos/names.c tests/chaos/names.h \
	tests/chaos/rates.c tests/chaos/rates.h tests/chaos/verdict.c tests/chaos/verdict.h \
	tests/chaos/world.c tests/chaos/world.h
if HAVE_CMOCKA
plain_programs += tests/chaos/test_chaos
endif
unsanitized += tests/chaos/test_chaos
