#!/bin/bash
# The daemon of the previous version and this one share a namespace. Jobs added by both programs run on
# both daemons, under a lock for each key. No job is lost or runs twice at once. If either daemon dies,
# the other takes over. Each loads the library once, and the older one never replaces the newer.
# Usage: tests/install/upgrade/mixed.sh    (after scripts/build; needs the commit named in `previous`)
set -eu
cd "$(dirname "$0")/../../.."
top=$PWD
read -r commit version < tests/install/upgrade/previous
jobs=600

dir=$(mktemp -d "${TMPDIR:-/tmp}/later-upgrade.XXXXXX")
chmod 755 "$dir"
declare -A pid
cleanup() {
    trap - EXIT INT TERM
    for name in "${!pid[@]}"; do kill -KILL "${pid[$name]}" 2>/dev/null || true; done
    wait 2>/dev/null || true
    rm -rf "$dir"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

die() {
    echo "mixed: $*" >&2
    tail -n 30 "$dir"/*.log >&2 || true
    exit 1
}

# until_holds SECONDS COMMAND...: poll it every 50 ms until it succeeds
until_holds() {
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        [ $SECONDS -lt $end ] || return 1
        sleep 0.05
    done
}

# What it does is tested, not how fast.
build_previous() {
    git cat-file -e "$commit^{commit}" 2>/dev/null ||
        die "commit $commit (version $version) is not in this clone: git fetch --unshallow"
    mkdir "$dir/old"
    git archive "$commit" | tar -x -C "$dir/old"
    (cd "$dir/old" && sh scripts/build CFLAGS=-O0) > "$dir/build.log" 2>&1 || die "the previous version does not build"
}

sock=$dir/redis.sock
R='later:{default}'
cli() { redis-cli -e -s "$sock" "$@"; }
later() { "$dir/old/later" --redis "unix:$sock" "$@"; }
later_new() { "$top/later" --redis "unix:$sock" "$@"; }

# The handler writes a line at its begin and end. Two jobs of one key at once show as begin, begin.
write_handlers() {
    mkdir "$dir/handlers"
    cat > "$dir/handlers/work" <<'HANDLER'
#!/bin/sh
echo "begin $LATER_ID $LATER_KEY $WHO" >> "$JOURNAL"
case $(cat) in
flaky) [ "$LATER_ATTEMPT" -gt 1 ] || { echo "fail $LATER_ID $LATER_KEY $WHO" >> "$JOURNAL"; exit 1; } ;;
slow) sleep 600 & echo $! > "$JOURNAL.sleep"; wait ;;
esac
echo "end $LATER_ID $LATER_KEY $WHO" >> "$JOURNAL"
HANDLER
    chmod 755 "$dir/handlers" "$dir/handlers/work"
    : > "$dir/journal"
}

start() { # NAME PROGRAM
    cat > "$dir/$1.yaml" <<CONF
redis: unix:$sock
state_dir: $dir/state-$1
handlers_dir: $dir/handlers
concurrency: 8
queues:
  work:
    lock: "{key}"
    backoff: { first: 200ms, jitter: 0% }
    env: { WHO: $1, JOURNAL: $dir/journal }
CONF
    "$2" --config "$dir/$1.yaml" >> "$dir/$1.log" 2>&1 &
    pid[$1]=$!
    until_holds 60 grep -q 'event=registered' "$dir/$1.log" || die "$1 did not register"
}

stop() { # NAME SIGNAL
    kill "-$2" "${pid[$1]}"
    wait "${pid[$1]}" 2>/dev/null || true
    unset "pid[$1]"
    mv "$dir/$1.log" "$dir/$1.$SECONDS.log"
}

library() { cli FCALL_RO later_version 1 "$R" | head -n 1; }
loads() { cli INFO commandstats | sed -n 's/^cmdstat_function|load:calls=\([0-9]*\).*/\1/p'; }
no_job_is_left() { [ "$(cli HLEN "$R:jobs")" = 0 ]; } # no outcomes are kept

# A third each by the old later, the new later and redis-cli. A fifth of all fail once.
add_all() { # COUNT
    local i what
    for i in $(seq "$1"); do
        what=plain
        [ $((i % 5)) -ne 0 ] || what=flaky
        case $((i % 3)) in
        0) later add work $what --key "k$((i % 40))" ;;
        1) later_new add work $what --key "k$((i % 40))" --in 300ms ;;
        *) cli FCALL later_add 1 "$R" work key "k$((i % 40))" $what | head -n 1 ;;
        esac
    done | sed 's/ .*//' >> "$dir/ids"
}

# No two jobs of a key ran at once, and each job ended exactly once.
judge() {
    awk '$1 == "begin" { if (held[$3] != "" && held[$3] != $2) { print "two at once under " $3; bad = 1 } held[$3] = $2 }
         $1 != "begin" { held[$3] = "" }
         $1 == "end" { ends[$2]++ }
         END { for (id in ends) { n++; if (ends[id] != 1) { print id " ended " ends[id] " times"; bad = 1 } }
               print n " jobs ended"; exit bad }' "$dir/journal" || die "the journal does not add up"
    [ "$(grep -c '^end ' "$dir/journal")" = "$(sort -u "$dir/ids" | wc -l)" ] || die "jobs are missing"
}

is_running() { [ "$(cli ZCARD "$R:running")" -ge "$1" ]; }

build_previous
write_handlers
redis-server --port 0 --unixsocket "$sock" --save '' --daemonize no > "$dir/redis.log" 2>&1 &
pid[redis]=$!
until_holds 30 redis-cli -s "$sock" PING > /dev/null || die "redis-server does not answer"

start old "$dir/old/laterd"
old_number=$(library)
start new "$top/laterd"
new_number=$(library)
[ "$new_number" -gt "$old_number" ] || die "the library is still number $new_number: there is nothing to mix"

add_all $jobs
until_holds 180 no_job_is_left || die "not all jobs ended"
judge
for who in old new; do
    echo "$who ran $(grep -c "^end .* $who$" "$dir/journal")"
    grep -q "^end .* $who$" "$dir/journal" || die "$who ran nothing"
done

# Chains go on and members of a batch are counted, whichever daemon ends them: 40 chains of three.
later_new batch add mixed > /dev/null
for i in $(seq 40); do
    later_new add work plain --key "chain$i" --batch mixed --then work --then work > /dev/null
done
later_new batch seal mixed > /dev/null
until_holds 60 no_job_is_left || die "not all chains ended"
links=$(awk '$1 == "end" && $3 ~ /^chain/ { n[$3]++ } END { for (key in n) print n[key] }' "$dir/journal" | sort | uniq -c | xargs)
[ "$links" = "40 3" ] || die "chains have not three links each: $links"
for who in old new; do
    grep -q "^end .* chain[0-9]* $who$" "$dir/journal" || die "$who ran no link of a chain"
done
later_new batch wait mixed --timeout 60s > "$dir/batch" || die "not all members are done"
grep -q '^members *120$' "$dir/batch" || die "the batch has not 120 members"
echo "40 chains of three went on, and all members of their batch were counted"

# Each daemon is killed while it runs a job; the other one takes the job back.
for who in old new; do
    other=$([ $who = old ] && echo new || echo old)
    stop $other TERM
    later_new add work slow --key dies > "$dir/slow"
    until_holds 60 is_running 1 || die "$who did not start the job"
    start $other "$([ $other = old ] && echo "$dir/old/laterd" || echo "$top/laterd")"
    stop $who KILL
    kill -KILL "$(cat "$dir/journal.sleep")" 2>/dev/null || true
    # The other one reaps it after 20 s and starts the job again.
    until_holds 120 grep -q 'event=reaped' "$dir/$other.log" || die "$other did not take over"
    later_new cancel --running "$(sed 's/ .*//' "$dir/slow")" > /dev/null
    until_holds 60 no_job_is_left || die "the job of the dead $who did not end"
    start $who "$([ $who = old ] && echo "$dir/old/laterd" || echo "$top/laterd")"
done

[ "$(library)" = "$new_number" ] || die "the library went back to $(library)"
[ "$(loads)" = 2 ] || die "the library was loaded $(loads) times, not once by each"
later_new fsck || die "fsck has findings"
stop new TERM
stop old TERM
echo "version $version (library $old_number) beside this one (library $new_number): ok"
