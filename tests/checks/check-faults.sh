#!/bin/sh
# Each line of tests/fault/catalogue.txt has an id of its own, and names tests that exist or says why the fault is not
# injected. A test function is named as tests/README.md says. What a run made of the catalogue: scripts/faults.
set -eu
LC_ALL=C
export LC_ALL
cd "${LATER_SOURCE_DIR:-$(dirname "$0")/../..}"
catalogue=tests/fault/catalogue.txt
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

# A function that no program runs does not compile (-Wunused-function). TORTURE makes functions (tests/torture).
find tests -name '*.c' -exec sed -n -e 's/^static void \([A-Za-z][A-Za-z0-9_]*\)(void \*\*.*/\1/p' \
    -e 's/^TORTURE(\([A-Za-z0-9_]*\),.*/\1/p' {} + | sort -u >"$work/functions"
[ -s "$work/functions" ]
awk -F' *[|] *' -v catalogue="$catalogue" '
function bad(why) { print catalogue ":" FNR ": " why; failed = 1 }
NR == FNR { is_test[$0] = 1; next }
/^#/ || /^$/ { next }
$1 !~ /^[A-Z]+[0-9]+$/ || NF != 3 || $2 == "" { bad("no line ID | fault | test..., or ID | fault | - reason"); next }
$1 in seen { bad($1 " stands in line " seen[$1] ", too") }
{ seen[$1] = FNR; n++ }
$3 ~ /^- ./ { next }
{
    m = split($3, tests, " ")
    if (m == 0) bad($1 " names no test")
    for (i = 1; i <= m; i++) if (!(tests[i] in is_test)) bad($1 " names " tests[i] ", which is no test")
}
END { exit failed || n == 0 }' "$work/functions" "$catalogue"

# The names of test functions: tests/README.md.
if find tests -name '*.c' -exec grep -nE '^static void [a-z]\w*\(void \*\*\w+\)$' {} + | grep -v ' test_'; then
    echo "a test function is called test_ and what holds, or begins with a line of a catalogue"
    exit 1
fi
