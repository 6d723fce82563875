## The proofs of gates: the built daemons, a real server, a handler that keeps a ledger and a judge of it.
gate_proofs = tests/gates/test_gate_book tests/gates/test_limits tests/gates/test_loss \
	tests/gates/test_parked tests/gates/test_rates tests/gates/test_share tests/gates/test_turns
libtests_a_SOURCES += tests/gates/gate_book.c tests/gates/gate_book.h tests/gates/gate_stage.c \
	tests/gates/gate_stage.h
tests_gates_gate_handler_LDADD =
## What it takes to load libc is not what is measured.
if !SANITIZED
tests_gates_gate_handler_LDFLAGS = -static
endif
if HAVE_CMOCKA
check_PROGRAMS += $(gate_proofs) tests/gates/gate_handler
endif
## They measure, and what they start is tested under sanitizers by the integration tests.
if !SANITIZED
quick_tests += $(gate_proofs)
endif
