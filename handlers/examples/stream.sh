#!/bin/sh
# stream.sh: a worker for a queue with `mode: stream` (doc/stream.md). It counts the words of the
# payload, one job at a time. To try it out: payloads `fail`, `retry`, `dead`, `sleep 5`.
set -euf # -f: the words of a header are not file patterns

# A shell variable cannot hold every byte, so the payload stays in a file.
payload=$(mktemp)
trap 'rm -f "$payload"' EXIT
trap 'exit 143' TERM INT

echo 'later-stream 1'
while IFS= read -r header; do
    id="" len=""
    for word in $header; do # unknown words are ignored
        case $word in
        id=*) id=${word#id=} ;;
        len=*) len=${word#len=} ;;
        esac
    done
    case $header in 'job '*) ;; *) continue ;; esac
    # Read exactly this many bytes, since the next job follows them. `head` of coreutils does.
    head -c "$len" >"$payload"
    IFS= read -r _ || exit 1 # the line feed after the payload

    text=
    [ "$len" -gt 20 ] || text=$(tr '\0' '?' <"$payload")
    case $text in
    fail) echo "fail $id asked to" ;;
    retry) echo "retry $id 1s later please" ;;
    dead) echo "dead $id never" ;;
    *)
        n=${text#sleep }
        case $n in "$text" | '' | *[!0-9]* | ?????*) n=0 ;; esac
        i=0
        while [ "$i" -lt "$n" ]; do
            sleep 1 </dev/null # a command that reads standard input would eat the next job
            i=$((i + 1))
            echo "progress $id $i of $n"
        done
        words=$(LC_ALL=C tr -c ' \t\n\v\f\r' x <"$payload" | wc -w)
        echo "ok $id $words words in $len bytes"
        ;;
    esac
done
