#!/bin/sh
# The built programs start, also when built outside the source tree. Generated files agree with their sources: the
# Lua library, the sample configuration, the unit for instances.
set -eu
build=${LATER_BUILD_DIR:-$(dirname "$0")/../..}
source=${LATER_SOURCE_DIR:-$(dirname "$0")/../..}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

number=$(cat "$source/src/lua/VERSION")
"$build/laterd" --version | grep "function library $number,"
grep -q "return {$number, " "$build/laterd.lua"
"$build/later" help >"$work/help"
grep -q add "$work/help"
install -m 644 "$source/packaging/debian/laterd.yaml" "$work/packaged.yaml" # the tree may be 0664
env -i "$build/laterd" --config "$work/packaged.yaml" --print-config >"$work/laterd.yaml"
diff -u "$source/etc/laterd.yaml" "$work/laterd.yaml"
sh "$source/scripts/unit-of-instances" <"$source/systemd/laterd.service" | diff - "$build/systemd/laterd@.service"
# A merge left nothing behind in a document.
if grep -nE '^(<<<<<<<|>>>>>>>) ' "$source"/*.md "$source"/doc/*.md >&2; then
    exit 1
fi
# Every document is installed: the others, and messages, refer to it.
for document in "$source"/doc/*.md; do
    case " $(sed 's/\\$//' "$source/Makefile.am" | tr '\n\t' '  ') " in
    *" doc/${document##*/} "*) ;;
    *) echo "Makefile.am does not install doc/${document##*/}" >&2 && exit 1 ;;
    esac
done
# Each fuzz target has its line in fuzz.h, by which test_corpus knows it.
for target in "$source"/tests/fuzz/fuzz_*.c; do
    name=$(basename "$target" .c)
    grep -q "X(${name#fuzz_})" "$source/tests/fuzz/fuzz.h" || { echo "tests/fuzz/fuzz.h lacks ${name#fuzz_}" >&2; exit 1; }
done
# One test builds its program and no other: with names that no file has, make would build all that it needs.
if grep -q '^CMOCKA_LIBS = -l' "$build/Makefile"; then
    (cd "$build" && env -u MAKEFLAGS make -n EXEEXT=.none check TESTS=tests/unit/test_text) >"$work/made"
    grep -o 'tests/[a-z]*/test_[a-z_]*\.none' "$work/made" | sort -u >"$work/tests"
    echo tests/unit/test_text.none | diff - "$work/tests"
fi
# A folder that scripts/package did not make stays as it is.
mkdir "$work/foreign"
: >"$work/foreign/mine"
status=0
sh "$source/scripts/package" "$work/foreign" 2>"$work/refusal" || status=$?
[ "$status" -eq 73 ] && [ -e "$work/foreign/mine" ] && grep -q 'not a folder of this script' "$work/refusal"
