## Simulation: the scheduler as it ships, on a real redis-server, in virtual time (README.md there).
simulation = tests/proofs/simulation/audit.c tests/proofs/simulation/audit.h tests/proofs/simulation/broadcast.c tests/proofs/simulation/broadcast.h tests/proofs/simulation/chain.c tests/proofs/simulation/chain.h tests/proofs/simulation/batch.c tests/proofs/simulation/batch.h tests/proofs/simulation/schedule.c tests/proofs/simulation/schedule.h tests/proofs/simulation/fair.c tests/proofs/simulation/fair.h tests/proofs/simulation/foreign.c tests/proofs/simulation/foreign.h tests/proofs/simulation/ledger.c \
	tests/proofs/simulation/ledger.h tests/proofs/simulation/main.c tests/proofs/simulation/net.c \
	tests/proofs/simulation/net.h tests/proofs/simulation/plan.c tests/proofs/simulation/plan.h \
	tests/proofs/simulation/producer.c tests/proofs/simulation/producer.h tests/proofs/simulation/server.c \
	tests/proofs/simulation/server.h tests/proofs/simulation/trouble.c tests/proofs/simulation/trouble.h \
	tests/proofs/simulation/virtual_guard.c tests/proofs/simulation/virtual_guard.h \
	tests/proofs/simulation/virtual_link.c tests/proofs/simulation/virtual_link.h \
	tests/proofs/simulation/virtual_pool.c tests/proofs/simulation/virtual_pool.h tests/proofs/simulation/worker.c tests/proofs/simulation/worker.h \
	tests/proofs/simulation/world.c tests/proofs/simulation/world.h
tests_sim_SOURCES = $(simulation)
tests_proofs_simulation_test_sim_SOURCES = tests/proofs/simulation/test_sim.c
EXTRA_tests_proofs_simulation_test_sim_DEPENDENCIES = tests/sim$(EXEEXT)
if HAVE_CMOCKA
test_programs += tests/sim tests/proofs/simulation/test_sim
endif
