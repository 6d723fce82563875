## Schedules: each next occurrence against a walk, minute by minute, with the C library; each zone against zdump.
## LATER_ZONES=all LATER_EXPRESSIONS=2000 is the whole proof, some twenty minutes.
check_schedule = tests/proofs/schedule/test_occurrences tests/proofs/schedule/test_zones
if HAVE_CMOCKA
plain_programs += $(check_schedule)
endif
unsanitized += $(check_schedule)
