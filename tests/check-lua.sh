#!/bin/sh
# The Lua library as it is loaded, in the order of Makefile.am, under luacheck: no unknown globals,
# nothing unused or shadowed, lines up to 130. Exit: 0 clean, 1 findings, 77 luacheck is not there.
set -eu
cd "${LATER_SOURCE_DIR:-$(dirname "$0")/..}"
command -v luacheck >/dev/null || {
    echo "luacheck is not installed (package lua-check): skipped"
    exit 77
}

# The words of a make variable whose lines are continued with a backslash.
variable() {
    sed -n "/^$1 =/,/[^\\\\]\$/p" Makefile.am | sed -e "s/^$1 =//" -e 's/\\$//' | tr '\n\t' '  '
}

joined=$(mktemp)
trap 'rm -f "$joined"' EXIT
# shellcheck disable=SC2046 # the names are words
sh scripts/join-lua src/lua/prelude.lua $(variable lua_functions) >"$joined"
for file in src/lua/*.lua; do
    grep -q "^-- ==== $(basename "$file")\$" "$joined" || {
        echo "$file is not in lua_functions of Makefile.am"
        exit 1
    }
done
# later_v1_rights asks for every command that is used.
for command in $(grep -ho "redis\.p\{0,1\}call('[A-Z]*'" src/lua/*.lua | cut -d"'" -f2 | sort -u); do
    grep -q "'$command'" src/lua/v1_rights.lua || {
        echo "$command is used by the library and not in src/lua/v1_rights.lua"
        exit 1
    }
done
luacheck --no-color --no-config --std lua51 --read-globals redis cjson cmsgpack struct bit \
    --max-line-length 130 --filename laterd.lua - <"$joined" || exit 1
