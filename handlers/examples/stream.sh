#!/bin/sh
# stream.sh: a worker of a queue with `mode: stream` (doc/stream.md): counts the words of the payload.
# One job at a time. For trials: payloads `fail`, `retry`, `dead`, `sleep 5`.
set -euf # -f: the words of a header are no file patterns

# The shell cannot hold every byte in a variable: the payload stays in a file.
payload=$(mktemp)
trap 'rm -f "$payload"' EXIT
trap 'exit 143' TERM INT

echo 'later-stream 1'
while IFS= read -r header; do
    id="" len=""
    for word in $header; do # words that are not known are passed over
        case $word in
        id=*) id=${word#id=} ;;
        len=*) len=${word#len=} ;;
        esac
    done
    case $header in 'job '*) ;; *) continue ;; esac
    # Exactly so many bytes, not one more: the next job stands behind them. `head` of coreutils keeps to that.
    head -c "$len" >"$payload"
    IFS= read -r _ || exit 1 # the line feed behind the body

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
            sleep 1 </dev/null # a command that reads its input would eat the next job
            i=$((i + 1))
            echo "progress $id $i of $n"
        done
        words=$(LC_ALL=C tr -c ' \t\n\v\f\r' x <"$payload" | wc -w)
        echo "ok $id $words words in $len bytes"
        ;;
    esac
done
