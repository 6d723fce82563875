#!/bin/sh
# gunzip.sh: a filter (doc/handlers.md). A payload that was compressed with gzip comes to the
# handler as it was before, any other one unchanged. One that is damaged is dead: it stays so.
gzip -dcf || exit 65
