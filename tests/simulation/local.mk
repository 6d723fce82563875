## Simulation: the scheduler as it ships, on a real redis-server, in virtual time (README.md there).
simulation = tests/simulation/audit.c tests/simulation/audit.h tests/simulation/ledger.c \
	tests/simulation/ledger.h tests/simulation/main.c tests/simulation/net.c \
	tests/simulation/net.h tests/simulation/plan.c tests/simulation/plan.h \
	tests/simulation/producer.c tests/simulation/producer.h tests/simulation/server.c \
	tests/simulation/server.h tests/simulation/trouble.c tests/simulation/trouble.h \
	tests/simulation/virtual_guard.c tests/simulation/virtual_guard.h \
	tests/simulation/virtual_link.c tests/simulation/virtual_link.h \
	tests/simulation/virtual_pool.c tests/simulation/virtual_pool.h tests/simulation/worker.c tests/simulation/worker.h \
	tests/simulation/world.c tests/simulation/world.h
tests_sim_SOURCES = $(simulation)
tests_simulation_test_sim_SOURCES = tests/simulation/test_sim.c
single_threaded += tests/simulation/test_sim
if HAVE_CMOCKA
check_PROGRAMS += tests/sim tests/simulation/test_sim
endif
