#!/bin/sh
# Runs luacheck on the Lua library as it is loaded, in the order of Makefile.am: no unknown globals,
# nothing unused or shadowed, lines up to 100 columns, functions up to 40 lines, modules as declared.
# Exit status: 0 clean, 1 findings, 77 luacheck is not installed.
set -eu
cd "${LATER_SOURCE_DIR:-$(dirname "$0")/../..}"
command -v luacheck >/dev/null || {
    echo "luacheck is not installed (package lua-check): skipped"
    exit 77
}

# The words of a make variable; its lines are continued by backslashes.
variable() {
    sed -n "/^$1 =/,/[^\\\\]\$/p" Makefile.am | sed -e "s/^$1 =//" -e 's/\\$//' | tr '\n\t' '  '
}

joined=$(mktemp)
trap 'rm -f "$joined"' EXIT
# shellcheck disable=SC2046 # the names are words
sh scripts/join-lua src/lua/core/prelude.lua $(variable lua_functions) >"$joined"
for file in src/lua/*/*.lua; do
    grep -q "^-- ==== ${file#src/lua/}\$" "$joined" || {
        echo "$file is not in lua_functions of Makefile.am"
        exit 1
    }
done
# later_v1_rights must ask for every command that daemons use, and for no other. Left out here are functions that
# only `later` calls: etc/users.acl grants their commands to its users.
by_hand='calls/audit audit/audit audit/jobs audit/sets audit/running audit/keys audit/beside audit/gates audit/queues audit/batches audit/schedules audit/topics audit/seen calls/distinct calls/series calls/list calls/metrics calls/batches calls/health calls/gates calls/workers calls/queues calls/summary calls/reasons calls/ahead calls/gate_names core/queue_rows'
by_hand="$by_hand public/show public/explain public/explain_gate public/stats public/result public/batch_jobs public/batch_show public/top public/seen seen/blooms public/find calls/recent calls/tenants fair/standing"
daemons=
for file in src/lua/*/*.lua; do
    name=${file#src/lua/}
    name=${name%.lua}
    case " $by_hand calls/rights " in
    *" $(echo "${file#src/lua/}" | sed "s/\\.lua//") "*) ;;
    *) daemons="$daemons $file" ;;
    esac
done
# shellcheck disable=SC2086 # the names are words
used=$(grep -ho "'[A-Z]\{3,\}'" $daemons | cut -d"'" -f2 | sort -u |
    grep -vx 'WITHSCORES\|LIMIT\|KEEPTTL\|PXAT\|BYLEX\|COUNT\|REPLACE\|HSETNX\|NOPERM\|UTC\|OVERFLOW\|SAT\|INCRBY\|REV\|INFO\|TRYAGAIN\|CLUSTERDOWN')
asked=$(grep -o "{'[A-Z]*'\|check('[A-Z]*'" src/lua/calls/rights.lua | cut -d"'" -f2 | sort -u)
for command in $used; do
    echo "$asked" | grep -qx "$command" || {
        echo "$command is used by the library and not in src/lua/calls/rights.lua"
        exit 1
    }
done
for command in $asked; do
    echo "$used" | grep -qx "$command" || grep -q "\"$command\"" src/redis/*.c src/store/*.c src/daemon/*.c || {
        echo "$command is in src/lua/calls/rights.lua and used by nothing that a daemon calls"
        exit 1
    }
done
luacheck --no-color --no-config --std lua51 --read-globals redis cjson cmsgpack struct bit \
    --max-line-length 100 --filename laterd.lua - <"$joined" || exit 1
# The first and the last line of a top-level function are not indented.
awk '
/^(local )?function |^register\(/ { name = $0; from = FNR }
/^end\)?$/ && name != "" {
    if (FNR - from >= 40) { print FILENAME ":" from ": " FNR - from + 1 " lines: " name; long = 1 }
    name = ""
}
END { exit long }' src/lua/*/*.lua || {
    echo "a function has 40 lines at most: divide it"
    exit 1
}
lua5.1 tests/checks/modules.lua src/lua/*/*.lua || exit 1
# The code that the Nth-call test puts in front of the library.
luacheck --no-color --no-config --std lua51 --read-globals redis --globals nth --max-line-length 130 --quiet \
    tests/proofs/nth/*.lua tests/checks/modules.lua || exit 1
# The count of operations; real.lua is only the front of a file.
find tests/operations -name '*.lua' ! -name real.lua -exec \
    luacheck --no-color --no-config --std lua51 --max-line-length 125 --quiet {} + || exit 1
