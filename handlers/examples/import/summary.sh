#!/bin/sh
# The callback of the batch: it comes once, when all rows have ended.
set -eu
rows=$((LATER_BATCH_TOTAL - 1)) # the import itself is a member, too
echo "import $LATER_BATCH: $rows rows, $((LATER_BATCH_DONE - 1)) done, $LATER_BATCH_DEAD dead"
