## The benchmarks: what scripts/bench runs beside the programs. Made by `make bench-programs` only.
bench_programs = bench/programs/add_jobs bench/programs/job_sleep bench/programs/job_stream \
	bench/programs/spawn_limit bench/programs/sync_limit
EXTRA_PROGRAMS = $(bench_programs)
bench_programs_add_jobs_SOURCES = bench/programs/add_jobs.c bench/programs/client.h
bench_programs_add_jobs_LDADD = $(HIREDIS_LIBS)
bench_programs_job_sleep_SOURCES = bench/programs/job_sleep.c
bench_programs_job_sleep_LDADD =
bench_programs_job_stream_SOURCES = bench/programs/job_stream.c bench/programs/record.h
bench_programs_job_stream_LDADD =
bench_programs_spawn_limit_SOURCES = bench/programs/spawn_limit.c
bench_programs_spawn_limit_LDADD =
bench_programs_sync_limit_SOURCES = bench/programs/sync_limit.c bench/programs/client.h
bench_programs_sync_limit_LDADD = $(HIREDIS_LIBS)

## The plug-in of the benchmarks, by the rule for shared objects.
bench_plugins = bench/programs/job_plugin.so
bench/programs/job_plugin.so: bench/programs/record.h src/run/plugin/later_plugin.h
bench-programs: $(bin_PROGRAMS) $(bench_programs) $(bench_plugins)
.PHONY: bench-programs
CLEANFILES += $(bench_programs) $(bench_plugins)
EXTRA_DIST += bench/instructions.txt bench/README.md bench/bench.py bench/calls bench/page bench/shards bench/instructions bench/test_suite.py \
	bench/peers/beanstalk.py bench/peers/bullmq.js bench/peers/bullmq_tenants.js bench/peers/celery_tasks.py \
	bench/peers/common.js bench/peers/graphile.js bench/peers/later_node.js bench/peers/sidekiq.rb \
	bench/programs/fan_out.py bench/programs/job_plugin.c bench/programs/job_stream.py bench/suite/__init__.py \
	bench/suite/chart.py bench/suite/contest.py bench/suite/fair.py bench/suite/fanout.py bench/suite/schedules.py bench/suite/gated.py bench/suite/growth.py bench/suite/idle.py \
	bench/suite/laterd.py bench/suite/longest.py bench/suite/longest_calls.py bench/suite/modes.py bench/suite/peers.py bench/suite/postgres.py \
	bench/suite/procs.py bench/suite/redis.py bench/suite/shards.py bench/suite/table.py
