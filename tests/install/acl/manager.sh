. "$(dirname "$0")/common.sh"

# It adds as a producer does.
follow
later add mail --in 1h --replicas 1 --confirm 10ms unconfirmed 2>&1 | grep -q 'replicas confirmed'
later add mail --in 1h --unique one --key k plain
told added
printf 'a\nb\n' | later add mail --in 1h --from -
bare FCALL later_v1_known 1 "$R" mail
# It has a schedule of its own.
later schedule add t cron @daily --queue mail x
later schedule ls
later schedule show t
later schedule next t
later schedule pause t
later schedule resume t
later schedule run-now t --force
later schedule calendar t
later schedule rm t
bare FCALL later_schedule_calendar 1 "$R" t 2026
bare FCALL_RO later_schedule_calendar 1 "$R" t 2026
bare FCALL later_schedule_set 1 "$R" s every 1h queue mail x
bare FCALL later_schedule_pause 1 "$R" s by me
bare FCALL later_schedule_resume 1 "$R" s
bare FCALL later_schedule_run 1 "$R" s
bare FCALL later_schedules 1 "$R"
bare FCALL_RO later_schedules 1 "$R" s
bare FCALL later_schedule_del 1 "$R" s
# It subscribes and publishes.
later topic subscribe 'news.*' mail
later publish news.one --in 1h x
later broadcast mail --in 1h x
told added
later topic ls
bare FCALL_RO later_topics 1 "$R"
later topic unsubscribe 'news.*' mail
# It finds names, and the jobs that it added last.
bare FCALL later_find 1 "$R" ma
bare FCALL_RO later_find 1 "$R" ma
bare FCALL later_v1_recent 1 "$R" me j00000000001
bare FCALL later_v1_recents 1 "$R" me
# It has Bloom filters of its own.
later seen mine 1 --capacity 1
later seen mine 2
later seen mine 3
later seen ls
bare FCALL_RO later_seen_list 1 "$R"
later seen rm mine
# It has a batch of its own, which it cancels.
later batch add b --finally mail
seq 150 | later add mail --in 1h --batch b --from -
later batch seal b
later batch show b
later batch ls b
bare FCALL_RO later_batch_show 1 "$R" b
bare FCALL_RO later_batch_jobs 1 "$R" b
later batch cancel b
later batch wait b --timeout 1m || [ $? -eq 1 ]
# It sees and changes what waits, by id and by unique key.
id=$(root_add mail --in 1h --unique two --keep 1h x)
for job in "$id" mail@two; do
    later show "$job"
    bare FCALL_RO later_show 1 "$R" "$job"
    bare FCALL later_result 1 "$R" "$job"
    bare FCALL_RO later_result 1 "$R" "$job"
    later reschedule --in 2h "$job"
    later run-now "$job"
done
later cancel mail@two
told cancelled
later cancel mail@one
# It waits for the end: of a job that was cancelled, of one that runs, of one that is to be cancelled meanwhile.
status=0
later wait "$id" || status=$?
[ $status -eq 130 ]
root_laterd
id=$(root_add mail --unique runs --keep 1h slow)
wait_for is_state "$id" running
later show mail@runs
"$LATER" wait mail@runs >/dev/null 2>"$DIR/wait.err" &
waiting=$!
wait_for env -u REDISCLI_AUTH sh -c 'redis-cli -s "$SOCK" HKEYS "$1" | grep -q "$2"' - "$R:await" "$id"
later cancel --running mail@runs
status=0
wait $waiting || status=$?
[ $status -eq 130 ]
later add mail --wait --keep 1h quick
# It cancels a parked job behind which others wait, and one that is the holder others wait for.
root FCALL later_lock 1 "$R" door other ttl 1h
root_add mail --lock door first >/dev/null
id=$(root_add mail --lock door x)
root_add mail --lock door --sem permits last >/dev/null
wait_for is_state "$id" parked
later cancel "$id"
# It wakes a worker: the queue has a name, and it is told.
listen
later add mail x
heard mail
