## The proofs of gates: the built daemons, a real server, a handler that keeps a ledger and a judge of it.
gate_proofs = tests/gates/test_gate_book tests/gates/test_limits tests/gates/test_loss \
	tests/gates/test_parked tests/gates/test_rates tests/gates/test_share tests/gates/test_turns
libtests_a_SOURCES += tests/gates/gate_book.c tests/gates/gate_book.h tests/gates/gate_stage.c \
	tests/gates/gate_stage.h
tests_gates_gate_handler_LDADD =
if HAVE_CMOCKA
check_PROGRAMS += $(gate_proofs) tests/gates/gate_handler
endif
quick_tests += $(gate_proofs)
