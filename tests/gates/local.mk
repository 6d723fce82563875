## The proofs of gates: the built daemons, a real server, a handler that writes a ledger, and a judge that reads it.
gate_proofs = tests/gates/test_fair tests/gates/test_gate_judge tests/gates/test_limits tests/gates/test_loss \
	tests/gates/test_parked tests/gates/test_rates tests/gates/test_share tests/gates/test_turns
libtests_a_SOURCES += tests/gates/gate_judge.c tests/gates/gate_judge.h tests/gates/gate_stage.c \
	tests/gates/gate_stage.h
## Starting the C library of a handler must not disturb the measurements. musl takes 0.1 ms. glibc, linked statically,
## takes 0.4 ms on a virtual machine: it asks the processor for its features, and the hypervisor answers.
tests_gates_gate_handler_LDADD =
tests_gates_gate_handler_LINK = $(MUSL_GCC) -static -o $@
tests/gates/gate_handler.$(OBJEXT): tests/gates/gate_handler.c
	$(AM_V_CC)mkdir -p $(@D) && $(MUSL_GCC) -std=gnu11 $(WARN_CFLAGS) $(CFLAGS) -c -o $@ $(top_srcdir)/tests/gates/gate_handler.c
if HAVE_CMOCKA
plain_programs += $(gate_proofs)
check_PROGRAMS += tests/gates/gate_handler
endif
## Not under sanitizers, because they measure; the integration tests run the same programs under sanitizers.
if !SANITIZED
quick_tests += $(gate_proofs)
endif
