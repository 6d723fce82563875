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
env -i "$build/laterd" --config "$source/packaging/debian/laterd.yaml" --print-config >"$work/laterd.yaml"
diff -u "$source/etc/laterd.yaml" "$work/laterd.yaml"
sh "$source/scripts/unit-of-instances" <"$source/systemd/laterd.service" | diff - "$build/systemd/laterd@.service"
# A folder that scripts/package did not make stays as it is.
mkdir "$work/foreign"
: >"$work/foreign/mine"
status=0
sh "$source/scripts/package" "$work/foreign" 2>"$work/refusal" || status=$?
[ "$status" -eq 73 ] && [ -e "$work/foreign/mine" ] && grep -q 'not a folder of this script' "$work/refusal"
