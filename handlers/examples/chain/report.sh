#!/bin/sh
# report.sh: the last job of the chain in doc/batches.md. What it prints goes to the log.
echo "$(cat), as job $LATER_PARENT found"
