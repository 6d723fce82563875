## The proofs of gates: the built daemons, a real server, a handler that keeps a ledger and a judge of it.
gate_proofs = tests/gates/test_gate_judge tests/gates/test_limits tests/gates/test_loss \
	tests/gates/test_parked tests/gates/test_rates tests/gates/test_share tests/gates/test_turns
libtests_a_SOURCES += tests/gates/gate_judge.c tests/gates/gate_judge.h tests/gates/gate_stage.c \
	tests/gates/gate_stage.h
## What it takes to start the C library of a handler is not what is measured: of musl 0.1 ms, of glibc, linked
## statically, 0.4 ms on a virtual machine, since it asks the processor what it can do, and the hypervisor answers.
tests_gates_gate_handler_LDADD =
tests_gates_gate_handler_LINK = $(MUSL_GCC) -static -o $@
tests/gates/gate_handler.$(OBJEXT): tests/gates/gate_handler.c
	$(AM_V_CC)mkdir -p $(@D) && $(MUSL_GCC) -std=gnu11 $(WARN_CFLAGS) $(CFLAGS) -c -o $@ $(top_srcdir)/tests/gates/gate_handler.c
if HAVE_CMOCKA
plain_programs += $(gate_proofs) tests/gates/gate_handler
endif
## They measure, and what they start is tested under sanitizers by the integration tests.
if !SANITIZED
quick_tests += $(gate_proofs)
endif
