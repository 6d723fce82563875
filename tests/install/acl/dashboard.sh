. "$(dirname "$0")/common.sh"

root_later add mail --lock user x >/dev/null
id=$(root_later add mail --in 1h --unique one --token t --key k waiting)
head -c 20000 /dev/zero | root_later add mail --in 1h - >/dev/null
root ZADD "$R:due:mail" 4102444800000 raw
root_later pause mail >/dev/null
later stats
later --json stats mail
later stats --prometheus
later stats --since 1h
later stats mail --since 1h
later top keys
later find m
later workers
later limits
later gates
later show "$id"
later show mail@one
later explain "$id"
later --json show "$id"
for state in due running parked dead done; do
    later ls mail --state $state
done
later ls mail --by reason
bare FCALL_RO later_v1_queues 1 "$R" '' 100
bare FCALL_RO later_v1_queues 1 "$R" .0:0 100
bare FCALL_RO later_v1_running 1 "$R"
bare FCALL_RO later_v1_summary 1 "$R"
bare FCALL_RO later_v1_ahead 1 "$R" mail 0 60000 60
bare FCALL_RO later_v1_gate_names 1 "$R" '' 250
later fsck
bare FCALL_RO later_result 1 "$R" "$id" || true
bare FCALL_RO later_version 1 "$R"
root CONFIG SET maxmemory-policy allkeys-lru
"$LATER" health | grep -q eviction
root CONFIG SET maxmemory-policy noeviction
# Questions about a job that is parked at a gate.
root_laterd
root FCALL later_lock 1 "$R" door other ttl 1h
id=$(root_add mail --lock door x)
root_later resume mail >/dev/null
wait_for is_state "$id" parked
later explain "$id"
later gates
later fsck
later --json ls mail --state parked
# Follow the events.
"$LATER" tail >"$DIR/tail" 2>"$DIR/tail.err" &
listener=$!
seen() {
    root_later add mail --in 1h x >/dev/null
    grep -q added "$DIR/tail"
}
patience=120 wait_for seen
! grep . "$DIR/tail.err"
