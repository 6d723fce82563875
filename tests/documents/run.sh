#!/bin/sh
# The commands of all documents, typed as they stand there (run.py), and each verb and option that they name
# (options.py). Of the README the first two blocks: the third is of a server that has been there for a while.
set -eu
for program in python3 redis-cli jq script; do
    command -v "$program" > /dev/null || { echo "$program is missing"; exit 77; }
done
source=$(cd "${LATER_SOURCE_DIR:-$(dirname "$0")/../..}" && pwd)
cd "${LATER_BUILD_DIR:-$source}"
export PYTHONDONTWRITEBYTECODE=1
python3 "$source/tests/documents/options.py" "$source"/*.md "$source"/doc/*.md
# Two at once, since most of them wait.
said=$(mktemp)
trap 'rm -f "$said"' EXIT
printf '%s\n' "$source/README.md:2" "$source"/doc/*.md |
    xargs -P 2 -n 3 python3 "$source/tests/documents/run.py" > "$said" 2>&1 || { cat "$said"; exit 1; }
cat "$said"
# A block that run.py no longer takes for commands must not go unnoticed.
typed=$(sed -n 's/.*: \([0-9]*\) commands, .*/\1/p' "$said" | awk '{n += $1} END {print n + 0}')
echo "$typed commands were typed"
[ "$typed" -ge 190 ]
