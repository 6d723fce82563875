. "$(dirname "$0")/common.sh"

# What later-web writes with it, function by function (src/web/changes.c).
follow
fcall later_add mail in 1h key k unique one attempts 3 priority 3 token t x
told added
id=$(root_add mail --in 1h x)
fcall later_reschedule "$id" +2h
listen
fcall later_run_now "$id"
heard mail
# Somebody waits for its end.
root FCALL later_v1_await 1 "$R" "$id"
listen "ended:$id"
fcall later_cancel "$id"
heard 'cancelled.*'
told cancelled
fcall later_pause mail by anna reason deploy for 1h
fcall later_resume mail
root_later schedule add nightly cron @daily --queue mail x >/dev/null
fcall later_schedule_pause nightly by anna reason deploy
fcall later_schedule_resume nightly
fcall later_schedule_run nightly
# Dead jobs, written by hand: no worker runs yet that would bury one.
for n in 0 1 2; do
    root ZADD "$R:dead:mail" 1 "j0000000000$n"
    root HSET "$R:jobs" "j0000000000$n" '-mail
x'
done
fcall later_retry j00000000000
fcall later_bulk retry mail dead by anna why because
bulk=$(redis-cli -e -p "$PORT" --user "$ROLE" FCALL later_bulk 1 "$R" cancel mail due rate 1/1h by anna | head -n 1)
fcall later_bulk_abort "$bulk" anna
