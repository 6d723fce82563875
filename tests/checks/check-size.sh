#!/bin/sh
# Sizes of functions and files in src/. Prints the ten longest functions. Fails when one has more
# than 80 lines, or a .c file more than 600 without the words "Reason for its length" in its first
# 30 lines. Needs universal-ctags; skipped (77) without it.
set -eu
LC_ALL=C
export LC_ALL
cd "${LATER_SOURCE_DIR:-$(dirname "$0")/../..}"

FUNCTION_MAX=80
FILE_MAX=600

if ! ctags --version 2>/dev/null | grep -q 'Universal Ctags'; then
    echo "check-size: universal-ctags is not installed: skipped" >&2
    exit 77
fi

sizes=$(mktemp)
trap 'rm -f "$sizes"' EXIT
trap 'exit 1' HUP INT TERM
failed=0

# src/lua/lua_lib.c and src/web/page_files.c are made by the build.
find src -name '*.[ch]' ! -path src/lua/lua_lib.c ! -path src/web/page_files.c | sort |
    ctags --quiet --options=NONE --languages=C --langmap=C:.c.h --kinds-C=f --fields=ne --excmd=number \
        --sort=no -f - -L - |
    awk -F '\t' '!/^!/ {
        line = end = 0
        for (i = 4; i <= NF; i++) {
            if ($i ~ /^line:/) line = substr($i, 6)
            if ($i ~ /^end:/) end = substr($i, 5)
        }
        if (end > 0) printf "%d %s:%d: %s\n", end - line + 1, $2, line, $1
    }' | sort -k 1,1nr -k 2 >"$sizes"
[ -s "$sizes" ] || { echo "src:0: ctags found no function" >&2; exit 1; }

echo "The ten longest of $(wc -l <"$sizes") functions (lines, where):"
head -n 10 "$sizes"
while read -r lines where name; do
    [ "$lines" -gt "$FUNCTION_MAX" ] || break
    echo "$where $name has $lines lines, $FUNCTION_MAX are the most"
    failed=1
done <"$sizes"

for file in $(find src -name '*.c' ! -path src/lua/lua_lib.c ! -path src/web/page_files.c | sort); do
    lines=$(wc -l <"$file")
    if [ "$lines" -gt "$FILE_MAX" ] && ! head -n 30 "$file" | grep -q 'Reason for its length'; then
        echo "$file:1: $lines lines: split it, or say \"Reason for its length\" in its head"
        failed=1
    fi
done
exit "$failed"
