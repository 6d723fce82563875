#!/bin/sh
# doc/faults.md is the result of a whole run: it has a line for each entry of tests/fault/catalogue.txt, with the tests
# named there, and each is ok or has the reason why it is not injected.
set -eu
cd "${LATER_SOURCE_DIR:-$(dirname "$0")/../..}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

# The lines of a table; those of injected faults without their results.
lines() {
    sed -n '/^| [A-Z][A-Z]*[0-9][0-9]* |/p' "$1" | sed 's/^\(.*` |\).*/\1/'
}

# Without logs the table has no results, but all lines.
sh scripts/fault-table </dev/null /dev/null >"$work/wanted" || true
lines "$work/wanted" >"$work/wanted.lines"
[ -s "$work/wanted.lines" ]
lines doc/faults.md | diff -u "$work/wanted.lines" - || {
    echo "doc/faults.md is not of the faults in tests/fault/catalogue.txt: run scripts/test, then scripts/faults"
    exit 1
}
if sed -n '/^| [A-Z][A-Z]*[0-9][0-9]* |/p' doc/faults.md | grep -v -E '` \| ok(: .*)? \|$|^\|[^|]*\|[^|]*\| \| not injected: .+ \|$'; then
    echo "the lines above of doc/faults.md are not ok: run scripts/test, then scripts/faults, and see why"
    exit 1
fi

# The names of test functions: tests/README.md.
if find tests -name '*.c' -exec grep -nE '^static void [a-z]\w*\(void \*\*\w+\)$' {} + | grep -v ' test_'; then
    echo "a test function is called test_ and what holds, or begins with a line of a catalogue"
    exit 1
fi
