#!/bin/sh
# Look at the page of later-web in Chromium, and attack it. Exit status 77: not tested here.
#   LATER_BUILD_DIR  where laterd and later-web are (default: the top folder)
set -eu
cd "$(dirname "$0")"
top=$(cd ../.. && pwd)
: "${LATER_BUILD_DIR:=$top}"
export LATER_BUILD_DIR

skip() {
    echo "web: NOT TESTED: $1"
    exit 77
}
for program in node npm; do
    command -v "$program" >/dev/null || skip "$program is not installed"
done
[ -x "$LATER_BUILD_DIR/later-web" ] || skip 'later-web was not built: libmicrohttpd is missing'
"$top/scripts/packages" "$top/scripts/packages-web.txt"

# The packages of node, as package-lock.json has them, and the profiles of Chromium go when this ends.
work=$(mktemp -d "${TMPDIR:-/tmp}/later-web-check.XXXXXX")
pid=
end() {
    [ -z "$pid" ] || { kill "$pid" 2>/dev/null; wait "$pid"; } || true
    rm -rf "$work"
}
trap end EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
export TMPDIR="$work"
run() {
    "$@" &
    pid=$!
    status=0
    wait "$pid" || status=$?
    pid=
    [ "$status" -eq 0 ] || exit "$status"
}

cp ./*.mjs package.json package-lock.json "$work"
export OPENAPI="$top/etc/later-web.openapi.json" WEB_DOC="$top/doc/web.md"
cd "$work"
run npm ci --silent --no-audit --no-fund
run node scene.mjs node run.mjs
run node scene.mjs node api.mjs
run node many.mjs
run node xss.mjs
