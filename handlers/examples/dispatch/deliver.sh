#!/bin/sh
# deliver.sh: the program that dispatch.py runs under the lock of a courier, COURIER ORDER in its
# arguments. It tells the courier and waits until the order is delivered:
#
#     order:ORDER        a hash that the couriers' app reads: whose it is, with a fence that rises
#     delivered:ORDER    a list that the app writes
#
# If it is run again, since a machine died, it finds what was delivered meanwhile.
set -eu
courier=$1 order=$2
${REDIS_CLI:-redis-cli} -e HSET "order:$order" courier "$courier" fence "$LATER_FENCE" >/dev/null
got=$(${REDIS_CLI:-redis-cli} -e BLMOVE "delivered:$order" "delivered:$order" LEFT LEFT 3600)
[ -n "$got" ] || { echo "not delivered in an hour" >&2; exit 1; }
echo "$order delivered by $courier"
