#!/bin/sh
# An order in three steps, each of which runs once for the job, however often the handler does. The payload is the
# number of the order. TRY: the command that talks to the outside (echo).
set -eu
order=$(cat)
transaction=$(later step charge -- ${TRY:-echo} charge "$order" "$LATER_ID")
parcel=$(later step ship -- ${TRY:-echo} ship "$order" "$transaction")
later step mail -- ${TRY:-echo} mail "$order" "$parcel"
