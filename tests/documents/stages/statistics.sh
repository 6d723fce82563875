# shellcheck shell=bash
# A quarter of an hour of three queues, in the rows that doc/statistics.md tells of, and a board of today.
config() {
    handler mail <<< '#!/bin/sh'
    printf 'queues:\n  mail: { lock: mailbox, fair: true }\n'
}

# Does something fail in these two minutes? Thumbs only failed in the second and third of seven.
fails() { [ "$1" = mail ] || { [ "$1" = thumbs ] && [ "$2" -ge 1 ] && [ "$2" -le 2 ]; }; }

stage() {
    local now queue minute row i
    now=$(date +%s)
    for queue in mail report thumbs; do
        later add "$queue" --in 1h x
        echo "HSET later:{default}:series $queue $((now / 3600))"
        for ((minute = now / 60 - 14; minute <= now / 60; minute++)); do
            row="later:{default}:m:$queue:$((minute / 60))"
            for i in 0 1 2 3 5 6 24; do # added, done, failed, dead, busy, late and ran
                case $i in [23]) fails "$queue" $((minute / 2 - now / 120 + 6)) || continue ;; esac
                echo "BITFIELD $row SET u32 #$((minute % 60 * 36 + i)) $((minute % 7 + i + 1))"
            done
        done
        [ $queue = report ] || echo "PFADD later:{default}:keys:$queue:$((now / 86400)) a b c"
    done > commands
    for i in 1 2 3; do
        echo "ZADD later:{default}:top:failed:keys:$((now / 86400)) $((i * 8388608 + 131071 - now % 86400)) user:$i"
    done >> commands
    sed -i '/^j/d' commands
    redis-cli < commands > /dev/null
    later schedule add mail-report every 1h --queue report
    echo a > urls
    keep QUEUE mail
    keep id 17
    keep order x
}
