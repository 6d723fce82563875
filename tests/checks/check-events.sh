#!/bin/sh
# The log and its manual (doc/monitoring.md, "The log"): every event in the sources is in the table, and the other
# way round. Every id of src/base/log_alerts.def is in the manual, with its event, and no id is used twice.
set -eu
cd "${LATER_SOURCE_DIR:-$(dirname "$0")/../..}"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

sed -n '/^## The log/,/^## /p' doc/monitoring.md >"$work/manual"
{
    find src -name '*.c' -exec grep -ho '"event=[a-z-]*' {} + | sed 's/.*=//'
    # Events whose name is an argument.
    echo awake
    echo not-adopted
} | grep . | sort -u >"$work/source"
sed -n '/^| `event=`/,/^$/p' "$work/manual" | grep '^| `' | cut -d'|' -f2 | grep -o '`[a-z-]*[` ]' |
    tr -d '` ' | grep -v '^$' | sort -u >"$work/told"
diff "$work/source" "$work/told" >"$work/diff" || {
    echo "events of the sources (<) and of doc/monitoring.md (>) differ:"
    grep '^[<>]' "$work/diff"
    exit 1
}

sed -n 's/^ALERT("\([^"]*\)", "\([^"]*\)", "\([^"]*\)", "\([0-9a-f]*\)")$/\1 \2=\3 \4/p' src/base/log_alerts.def |
    sed 's/ = / /' >"$work/ids"
grep -c '^ALERT(' src/base/log_alerts.def | grep -qx "$(wc -l <"$work/ids")" || {
    echo "src/base/log_alerts.def has rows that are not understood"
    exit 1
}
sed 's/.* //' "$work/ids" | sort | uniq -d | grep . && { echo "an id is there twice"; exit 1; }
while read -r line; do
    id=${line##* }
    grep -q "^| \`${line% *}\` | .* | \`$id\` |\$" "$work/manual" || {
        echo "doc/monitoring.md does not tell of: $line"
        exit 1
    }
    [ ${#id} -eq 32 ] || { echo "no id: $line"; exit 1; }
done <"$work/ids"
