# shellcheck shell=bash
# A worker, which computes what is next, and the days of a year: one that failed, one that was missed.
config() {
    handler backup <<< '#!/bin/sh'
    echo 'concurrency: 2'
}

stage() {
    local day
    later schedule add pulse every 90s
    for ((day = 0; day < 330; day++)); do
        [ "$day" -ne 94 ] || { echo "$((3 * 512 + day))"; continue; }
        echo "$day"
        echo "$((day == 260 ? 2 * 512 + day : 512 + day))"
    done | sed 's/.*/SETBIT later:{default}:cal:nightly:2026 & 1/' | redis-cli > /dev/null
}
