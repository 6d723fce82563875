#!/bin/sh
# Imports the lines of a file, whose path is the payload. Killed at any moment, the next attempt goes on behind the last
# line that a checkpoint has told. IMPORT: what takes one line as its argument (echo).
set -eu
file=$(cat)
n=${LATER_CHECKPOINT:-0}
tail -n +$((n + 1)) "$file" | while IFS= read -r line; do
    ${IMPORT:-echo} "$line"
    n=$((n + 1))
    # A checkpoint is a promise about what is done: first the work, then the line.
    echo "checkpoint $n" >&3
done
