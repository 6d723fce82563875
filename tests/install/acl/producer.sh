. "$(dirname "$0")/common.sh"

trace=00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
all="--key user:42 --priority 3 --attempts 4 --timeout 1m --expire 1d --keep 1h --trace $trace"
follow
later add mail plain
told added
# shellcheck disable=SC2086 # words
later add mail --in 1h $all --token once all
# shellcheck disable=SC2086
later add mail --in 1h $all --token once all
later add mail --in 1h --replicas 1 --confirm 10ms unconfirmed 2>&1 | grep -q 'replicas confirmed'
later add mail --lock user --sem permits --rate speed gated
for mode in drop move replace; do
    later add mail --in 1h --unique one --unique-mode $mode --unique-for 1h "$mode"
done
head -c 20000 /dev/zero | later add mail --in 1h --unique big -
later add mail --in 1h --unique big --unique-mode replace small
printf 'a\nb\n' | later add mail --from -
bare -x FCALL later_add 1 "$R" mail in 5m </dev/null
bare FCALL later_v1_known 1 "$R" mail
later batch add b --finally mail
later add mail --in 1h --batch b x
later batch seal b
# Who waits for a batch hears of its end.
later batch add empty
root_later batch wait empty --timeout 1m >"$DIR/ended" &
waiting=$!
is_waited_for() { env -u REDISCLI_AUTH redis-cli -s "$SOCK" PUBSUB CHANNELS | grep -q ended:batch:empty; }
wait_for is_waited_for
later batch seal empty
patience=100 wait_for grep -q '^state.*ended' "$DIR/ended"
wait $waiting
# It publishes, also to a queue that cannot take its copy.
root FCALL later_subscribe 1 "$R" news mail
root FCALL later_subscribe 1 "$R" news keyed
root HSET "$R:queues" keyed 'lock={key}'
later publish news --in 1h x
later broadcast mail --in 1h x
told dead
# It asks what was seen, also for a filter that is full.
later seen mine 1 --capacity 1
later seen mine 2
later seen mine 3
bare FCALL later_seen 1 "$R" mine 4
# It finds names, and the jobs that it added last.
bare FCALL later_find 1 "$R" ma
bare FCALL_RO later_find 1 "$R" ma
bare FCALL later_v1_recent 1 "$R" me j00000000001
bare FCALL later_v1_recents 1 "$R" me
# The raw way.
bare ZADD "$R:due:mail" 4102444800000 raw
bare PUBLISH "$R:wake" mail
# Replace a job that runs: it gets a successor. Replace a parked job: it leaves its gate, where others wait.
root_laterd
id=$(root_add mail --unique runs slow)
wait_for is_state "$id" running
later add mail --unique runs --unique-mode replace next
root FCALL later_lock 1 "$R" door other ttl 1h
root_add mail --lock door first >/dev/null
id=$(root_add mail --lock door --unique stands x)
root_add mail --lock door --sem permits last >/dev/null
wait_for is_state "$id" parked
later add mail --lock door --unique stands --unique-mode replace y
root FCALL later_lock 1 "$R" single other ttl 1h
id=$(root_add mail --lock single --unique alone x)
wait_for is_state "$id" parked
later add mail --lock single --unique alone --unique-mode replace y
# A job that has ended keeps its unique key for as long as --unique-for says.
root_add mail --unique ended --unique-for 1h --keep 1h x >/dev/null
wait_for is_state mail@ended done
later add mail --unique ended x
# In a namespace with the maximum number of queues.
root EVAL "for i = 1, 10000 do redis.call('SADD', KEYS[1], 'q' .. i) end" 1 "$R:names"
root SREM "$R:names" q1
later add mail x
root ZADD "$R:due:mail" 1 x
listen
later add q7 x
heard q7
