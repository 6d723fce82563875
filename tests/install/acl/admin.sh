. "$(dirname "$0")/common.sh"

root FUNCTION FLUSH
later setup
later setup --force
later limits set more semaphore 3
later limits set gone rate 10/1m --burst 2
later limits delete gone
later add mail --in 1h --unique one --lock user --sem permits --rate speed --token t x
head -c 20000 /dev/zero | later add mail --in 1h -
id=$("$LATER" add mail --in 1h x)
later show "$id"
later show mail@one
later explain "$id"
later reschedule "$id" --in 2h
listen
later run-now "$id"
heard mail
follow
later cancel "$id"
told cancelled
[ "$(env -u REDISCLI_AUTH redis-cli -s "$SOCK" HGET "$R:stats" cancelled:mail)" = 1 ]
later pause mail --for 1h
later resume mail
for state in due running parked dead done; do
    later ls mail --state $state
done
"$LATER" export mail >"$DIR/mail.jsonl"
later import mail "$DIR/mail.jsonl"
root ZADD "$R:due:mail" 4102444800000 raw
later purge mail --state due --yes
[ "$(env -u REDISCLI_AUTH redis-cli -s "$SOCK" ZCARD "$R:due:mail")" = 0 ]
# Dead jobs, written by hand: no worker runs yet that would bury one.
root ZADD "$R:dead:mail" 1 j00000000000
root HSET "$R:jobs" j00000000000 '-mail
x'
later retry j00000000000
root ZADD "$R:dead:mail" 1 j00000000001
root HSET "$R:jobs" j00000000001 '-mail
x'
later retry mail --all --spread 1h
later stats
later stats --prometheus
later workers
later gates
later throttle speed
later health || [ $? = 1 ]
# All kinds of findings for the repair.
root ZADD "$R:q:mail:5" 1 j00000000009
root ZADD "$R:running" 5 j00000000008
root HSET "$R:workers" 77 3
root SET "$R:big:j00000000007" lost
root HSET "$R:errors" j00000000006 x
root ZADD "$R:parked:mail" 5 j00000000005
root HSET "$R:parked" j00000000005 lock:x
# One that the repair buries, and whose death is told with a large payload.
id=$(head -c 20000 /dev/zero | "$LATER" add mail --in 1h --on-dead told -)
root HSET "$R:tries" "$id" corrupt
later fsck || [ $? = 1 ]
later fsck --repair || [ $? = 1 ]
[ "$(env -u REDISCLI_AUTH redis-cli -s "$SOCK" ZCARD "$R:q:told:5")" = 1 ]
later lock nightly true
later sem permits true
later quiet --all || [ $? = 66 ]
later wait --timeout 10ms "$("$LATER" add mail --in 1h y)" || [ $? = 75 ]
later setup --force
# Jobs at gates, and a job that a worker runs.
root_laterd
slow=$("$LATER" add mail slow)
wait_for is_state "$slow" running
later cancel --running "$slow"
root FCALL later_lock 1 "$R" door other ttl 1h
root_later limits set shut semaphore 0 >/dev/null
for n in 1 2 3; do
    id=$("$LATER" add mail --lock door --sem shut --unique "u$n" $n)
done
wait_for is_state "$id" parked
later explain "$id"
later gates
later fsck || [ $? = 1 ]
later cancel "$id"
later limits set shut semaphore 2
later quiet --all
later quiet --all --off
