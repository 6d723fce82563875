#!/bin/sh
# alert.sh: the queue that the chain in doc/batches.md names with on_dead.
echo "job $LATER_PARENT died ($LATER_REASON). Its payload:"
cat
