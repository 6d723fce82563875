#!/bin/sh
# Fan out: a job for each line of the payload, in the batch of this job (doc/batches.md). They are
# there when this job is done, all or none, so a second attempt adds none twice.
set -eu
while IFS= read -r line; do
    printf 'add row batch %s key %s -- %s\n' "$LATER_BATCH" "$LATER_ID" "$line" >&3
done
