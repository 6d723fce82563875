## Chaos: random calls, foreign keys, dying workers and a jumping clock, judged by what always holds.
tests_proofs_chaos_test_chaos_SOURCES = tests/proofs/chaos/test_chaos.c tests/proofs/chaos/arena.c tests/proofs/chaos/arena.h \
	tests/proofs/chaos/audit.c tests/proofs/chaos/audit.h \
	tests/proofs/chaos/batch.c tests/proofs/chaos/batch.h tests/proofs/chaos/call.c tests/proofs/chaos/call.h \
	tests/proofs/chaos/chain.c tests/proofs/chaos/chain.h tests/proofs/chaos/child.c tests/proofs/chaos/child.h \
	tests/proofs/chaos/dice.c tests/proofs/chaos/dice.h tests/proofs/chaos/drain.c tests/proofs/chaos/drain.h \
	tests/proofs/chaos/judge.c tests/proofs/chaos/judge.h tests/proofs/chaos/ledger.c tests/proofs/chaos/ledger.h \
	tests/proofs/chaos/moves.c tests/proofs/chaos/moves.h tests/proofs/chaos/moves_batch.c \
	tests/proofs/chaos/moves_foreign.c \
	tests/proofs/chaos/moves_gates.c tests/proofs/chaos/moves_jobs.c tests/proofs/chaos/moves_sync.c \
	tests/proofs/chaos/moves_workers.c tests/proofs/chaos/names.c tests/proofs/chaos/names.h \
	tests/proofs/chaos/rates.c tests/proofs/chaos/rates.h tests/proofs/chaos/finding.c tests/proofs/chaos/finding.h \
	tests/proofs/chaos/world.c tests/proofs/chaos/world.h
if HAVE_CMOCKA
plain_programs += tests/proofs/chaos/test_chaos
endif
unsanitized += tests/proofs/chaos/test_chaos
