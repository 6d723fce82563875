#!/bin/sh
# The house rules that a machine can check, from the source alone (no build). Prints each violation
# as "file:line: reason"; exit status 1 if there is any.
#
#   a  what a folder of src/ may include (doc/architecture.md, "The layers")
#   b  a .c includes its own .h first
#   c  every .h compiles alone
#   d  no call that blocks the loop, no fork, no string function without a bound
#   e  which files read a clock
#   f  the command writes to standard output by cli/show/out.h only, which keeps the errors
#      ask/ prints nothing; cli/show/ asks nothing
#   g  no circle: a file uses another and is used by it, in however many steps
#   h  no path of a build machine, no white space at the end of a line
#
# Rule c uses CC and CPPFLAGS.
set -eu
LC_ALL=C
export LC_ALL
cd "${LATER_SOURCE_DIR:-$(dirname "$0")/../..}"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
found=$work/found
list=$work/list
: >"$found"

# src/lua/lua_lib.c and src/web/page_files.c are made by the build.
find src -name '*.[ch]' ! -path src/lua/lua_lib.c ! -path src/web/page_files.c | sort >"$list"
[ -s "$list" ] || { echo "src:0: no source file was found" >&2; exit 1; }

# ---- a, b, d, e, f: one pass over the code without comments and the contents of strings
cat >"$work/code.awk" <<'AWK'
function bad(reason) {
    printf "%s:%d: %s\n", file, FNR, reason
}

# The layers: folder -> folders it may include beside itself.
function layers() {
    may["base"] = ""
    may["loop"] = "base"
    may["redis"] = "base loop"
    may["lua"] = ""
    may["job"] = "base"
    may["store"] = "base loop redis job" # loop: types that come with the headers of redis/
    may["run"] = "base loop job"
    may["conf"] = "base schedule"
    may["schedule"] = "base"
    may["sched"] = "base job store" # pure: no clock, no Redis, no process, no configuration
    may["worker"] = "base loop redis job store run" # job, redis: types that come with store/
    may["serve"] = "base loop job store run conf sched worker"
    may["daemon"] = "base loop redis job store run conf schedule sched worker serve"
    may["ask"] = "base redis job conf schedule worker" # a question to Redis: no command line, no output
    may["json"] = "base redis job ask" # an answer as JSON: asks nothing. ask: where values stand in replies
    may["health"] = "base redis job conf ask json"
    may["web"] = "base loop redis job conf ask json health worker" # redis: types that come with ask/. worker: the password
    may["cli"] = "base loop redis job store run conf schedule sched worker serve ask json health"
    lua_lib["redis"] = lua_lib["daemon"] = lua_lib["cli"] = 1 # may include lua/lua_lib.h
    # Library -> the only folders that include its header.
    owner["ev.h"] = "loop"
    owner["ev++.h"] = "loop"
    owner["hiredis"] = "redis"
    owner["openssl"] = "redis"
    owner["yaml.h"] = "conf"
    owner["jansson.h"] = "cli daemon json health web"
    owner["microhttpd.h"] = "web"
}

# Calls that block their thread -> the files that may make them. The command line (cli/, ask/) has no loop
# to block and is not checked.
function blockers() {
    blocks["sleep"] = blocks["usleep"] = blocks["nanosleep"] = blocks["clock_nanosleep"] = ""
    # dial: on the thread of redis/probe.c.
    blocks["getaddrinfo"] = "src/redis/dial.c"
    blocks["gethostbyname"] = ""
    # spawn: reaps a process that it has just killed, on a pool thread or before the loop starts.
    # init: process 1 of a container, which has no loop.
    # filters: the process that becomes a handler, which has no loop.
    blocks["waitpid"] = "src/run/process/spawn.c src/run/process/init.c src/run/isolation/filters.c"
    # exec: a pool thread, once the pidfd is readable. pidwatch: a thread that only waits.
    # password: on the probe's thread. embedded: once the pidfd is readable, or with WNOHANG. guard: once the pidfd is readable.
    blocks["waitid"] = "src/run/exec/exec.c src/run/guard/guard.c src/run/process/pidwatch.c src/run/stream/stream_proc.c " \
        "src/daemon/embedded.c src/worker/password.c"
    # exec: the loop of a pool thread. embedded: at the stop, after the main loop has ended.
    # log: without waiting, to see whether stderr takes a line. offspring_end: on another thread, or
    # before the loop starts.
    # spawn: on a pool thread, until a descriptor becomes free. guard: at the stop, until the guard
    # has ended. guard_main: a process of its own. door: without waiting. dial, password: on the probe's thread.
    blocks["poll"] = blocks["ppoll"] = \
        "src/run/isolation/cgroup.c src/run/exec/exec.c src/run/guard/guard.c src/run/guard/guard_main.c src/run/process/spawn.c src/daemon/embedded.c " \
        "src/base/log.c src/run/process/offspring_end.c src/run/isolation/filters.c src/redis/dial.c src/worker/password.c src/web/door.c"
    blocks["select"] = blocks["pselect"] = blocks["system"] = blocks["popen"] = ""
}

function unbounded() {
    never["fork"] = never["vfork"] = "processes are started by posix_spawn (run/process/spawn.c)"
    never["sprintf"] = never["vsprintf"] = "no bound: snprintf, buf_printf or mem_printf"
    never["strcpy"] = never["strcat"] = never["stpcpy"] = "no bound: snprintf or memcpy of a checked length"
    never["gets"] = "no bound"
    never["time"] = never["gettimeofday"] = "time is CLOCK_MONOTONIC (base/clock.h) or Redis TIME"
}

# clock_gettime -> the files that may call it, beside loop/.
function clocks() {
    clock["src/base/clock.c"] = 1  # mono_now
    clock["src/base/log.c"] = 1    # CLOCK_REALTIME: the time stamp of a log line
}

function among(word, words) {
    return index(" " words " ", " " word " ") > 0
}

# A call of the function `name`, not of a member with that name.
function calls(code, name) {
    return code ~ ("(^|[^A-Za-z0-9_.>])" name "[ \t]*\\(")
}

# The line without comments and quoted text. in_comment is kept for the next line.
function strip(line,    out, i, c, two, quote) {
    out = ""
    quote = ""
    for (i = 1; i <= length(line); i++) {
        c = substr(line, i, 1)
        two = substr(line, i, 2)
        if (in_comment) {
            if (two == "*/") {
                in_comment = 0
                i++
            }
        } else if (quote != "") {
            if (c == "\\")
                i++
            else if (c == quote) {
                quote = ""
                out = out c
            }
        } else if (two == "/*") {
            in_comment = 1
            i++
        } else if (two == "//") {
            break
        } else {
            if (c == "\"" || c == "'")
                quote = c
            out = out c
        }
    }
    return out
}

# A .c includes its own header first; without one (cli/verbs/cmd_*.c), the header of its folder that
# declares what it has.
function check_own_first(what,    own) {
    own = substr(file, 5)
    sub(/\.c$/, ".h", own)
    if (own in header ? what != own : what !~ ("^" folder "/"))
        bad("includes " what " first, not " (own in header ? own : "the header of " folder "/ that declares it"))
}

function check_project(what,    to) {
    to = what
    sub(/\/.*/, "", to)
    if (what !~ /\//)
        bad("include \"" what "\": paths are relative to src/, folder first")
    else if (what ~ /(^|\/)\.\.\//)
        bad("include \"" what "\": no ../")
    else if (to == folder)
        return
    else if (what == "lua/lua_lib.h" && folder in lua_lib)
        return
    else if (!among(to, may[folder]))
        bad(folder "/ may not include " to "/ (" what ")" (to == "daemon" || to == "cli" || to == "web" ? ": faces are included by nobody" : ""))
    # Its calls block: it is for the command line and for the probe's thread.
    if ((what == "redis/client.h" || what == "redis/client_conn.h") && folder != "redis" && folder != "ask" && folder != "health" && folder != "cli")
        bad(what " blocks: only redis/, ask/, health/ and cli/ may include it")
}

function check_system(what,    lib) {
    lib = what
    sub(/\/.*/, "", lib)
    if (lib in owner && !among(folder, owner[lib]))
        bad("<" what ">: only " owner[lib] "/ includes it")
}

function check_include(line,    what) {
    sub(/^[ \t]*#[ \t]*include[ \t]*/, "", line)
    what = substr(line, 2)
    sub(/[">].*/, "", what)
    if (!nincludes++ && is_c && !is_main)
        check_own_first(what)
    if (substr(line, 1, 1) == "\"")
        check_project(what)
    else
        check_system(what)
}

function check_code(code,    name) {
    if (folder != "loop" && code ~ /(^|[^A-Za-z0-9_])(ev_|EV_|EVFLAG_|EVBREAK_)[A-Za-z]/)
        bad("libev is named in loop/ only")
    if (folder != "redis" && code ~ /(^|[^A-Za-z0-9_])(redis[A-Z]|freeReplyObject)/)
        bad("hiredis is named in redis/ only")
    if (folder == "cli" && file != "src/cli/show/out.c" &&
        (code ~ /(^|[^A-Za-z0-9_])stdout([^A-Za-z0-9_]|$)/ || calls(code, "(v?printf|puts|putchar)")))
        bad("standard output is written by cli/show/out.h, which keeps the error")
    if (folder == "ask" && code ~ /(^|[^A-Za-z0-9_])stderr([^A-Za-z0-9_]|$)/)
        bad("ask/ prints nothing: its caller does")
    if (file ~ /^src\/cli\/show\// && code ~ /->server/)
        bad("cli/show/ asks nothing: it is given the answer")
    if (code !~ /\(/)
        return
    for (name in never)
        if (calls(code, name))
            bad(name "(): " never[name])
    for (name in blocks)
        if (folder != "cli" && folder != "ask" && calls(code, name) && !among(file, blocks[name]))
            bad(name "() blocks the loop" (blocks[name] != "" ? " (allowed in " blocks[name] ")" : ""))
    if (folder != "loop" && calls(code, "clock_gettime") && !(file in clock))
        bad("clock_gettime(): the clock is read by mono_now (base/clock.h)")
}

BEGIN {
    layers()
    blockers()
    unbounded()
    clocks()
    while ((getline name < list) > 0)
        if (name ~ /\.h$/)
            header[substr(name, 5)] = 1
}

FNR == 1 {
    file = FILENAME
    folder = file
    sub(/^src\//, "", folder)
    if (folder !~ /\//)
        folder = ""
    sub(/\/.*/, "", folder)
    is_c = file ~ /\.c$/
    is_main = file ~ /\/main\.c$/
    in_comment = nincludes = 0
    if (!(folder in may))
        bad("a folder or file the layers do not know: add it to the table of this script and to doc/architecture.md")
}

{
    was_comment = in_comment
    code = strip($0)
    if (!was_comment && code ~ /^[ \t]*#[ \t]*include[ \t]*["<]/)
        check_include($0)
    else
        check_code(code)
}
AWK
# shellcheck disable=SC2046  # names of source files hold no spaces
awk -v list="$list" -f "$work/code.awk" $(cat "$list") >>"$found"

# ---- c
if command -v "${CC:-cc}" >/dev/null 2>&1; then
    grep '\.h$' "$list" | while read -r header; do
        # shellcheck disable=SC2086  # CPPFLAGS is a list
        why=$(printf '#include "%s"\n' "${header#src/}" |
            ${CC:-cc} -std=gnu11 -Isrc ${CPPFLAGS-} -fsyntax-only -x c - 2>&1) ||
            printf '%s:1: does not compile alone: %s\n' "$header" \
                "$(printf '%s\n' "$why" | grep -m 1 'error' || printf '%s\n' "$why" | head -n 1)"
    done >>"$found"
else
    echo "check-layers: no compiler (CC), headers are not compiled" >&2
fi

# ---- g: X.c, X.h and X_priv.h are one file. It uses what it includes, and a file that defines what
# its headers declare.
cat >"$work/circles.awk" <<'AWK'
# The files that stand in a circle still. Take out the ones that do no more; add none.
BEGIN {
    n = split("conf/conf conf/conf_adopt conf/conf_check conf/conf_env conf/conf_gates " \
        "conf/conf_isolation conf/conf_load conf/conf_print conf/conf_reload conf/conf_row " \
        "conf/conf_schedule conf/conf_text conf/conf_unknown conf/conf_value daemon/daemon " \
        "daemon/emptying daemon/tidy daemon/wiring run/guard/guard run/guard/guard_main " \
        "run/isolation/filters run/isolation/isolation run/isolation/isolation_main sched/sched " \
        "sched/sched_answers sched/sched_claims sched/sched_enter sched/sched_go sched/sched_look " \
        "sched/sched_solo sched/sched_start sched/sched_state sched/sched_sync sched/sched_stop " \
        "store/store_redis store/store_sync", words, " ")
    for (i = 1; i <= n; i++)
        known[words[i]] = 1
}
function unit_of(path) {
    sub(/^src\//, "", path)
    sub(/\.[ch]$/, "", path)
    sub(/_priv$/, "", path)
    return path
}
function use(from, to) {
    if (from != to && !((from, to) in edge)) {
        edge[from, to] = 1
        uses[from] = uses[from] " " to
    }
}
FNR == 1 {
    unit = unit_of(FILENAME)
    if (!(unit in units))
        units[unit] = FILENAME ":1: "
    is_header = FILENAME ~ /\.h$/
}
/^#include "/ {
    split($0, part, "\"")
    included[unit, unit_of(part[2])] = 1
    next
}
# Names of a statement in the first column, which clang-format sees to. What a .c declares as extern
# it uses.
/^extern / || more {
    more = (more ? more " " : "") $0
    if (more !~ /;/)
        next
    gsub(/\[[^]]*\]|\(.*|;.*/, "", more)
    n = split(more, part, ",")
    for (more = ""; n > 0; n--) {
        sub(/.*[^a-z0-9_]/, "", part[n])
        declared[part[n]] = declared[part[n]] " " unit
    }
    next
}
/^(static|typedef|#|\/|[^A-Za-z])/ { next }
is_header && /[a-z0-9_]\(/ || !is_header && /[a-z0-9_](\(|(\[[^]]*\])? = )/ {
    name = $0
    sub(/(\[[^]]*\])? = .*|\(.*/, "", name)
    sub(/.*[^a-z0-9_]/, "", name)
    if (is_header)
        declared[name] = declared[name] " " unit
    else if ($0 !~ /;$/ || / = /)
        defined[name] = unit
}
# The way back from `to` to `from`, or "".
function way(from, to,    queue, head, tail, via, at, next_ones, n, i, text) {
    queue[head = tail = 1] = to
    via[to] = to
    while (head <= tail && !(from in via)) {
        at = queue[head++]
        n = split(uses[at], next_ones, " ")
        for (i = 1; i <= n; i++)
            if (!(next_ones[i] in via)) {
                via[next_ones[i]] = at
                queue[++tail] = next_ones[i]
            }
    }
    if (!(from in via))
        return ""
    for (at = from; at != to; at = via[at])
        text = " uses " at text
    return to text
}
END {
    for (pair in included) {
        split(pair, two, SUBSEP)
        if (two[2] in units)
            use(two[1], two[2])
    }
    for (name in declared) {
        n = split(declared[name], two, " ")
        for (i = 1; name in defined && i <= n; i++)
            use(two[i], defined[name])
    }
    for (unit in units) {
        n = split(uses[unit], two, " ")
        circle = ""
        for (i = 1; i <= n && circle == ""; i++)
            circle = way(unit, two[i])
        if (circle != "" && !(unit in known))
            print units[unit] "a circle: " unit " uses " circle
        if (circle == "" && unit in known)
            print units[unit] "stands in no circle now: take it off the list of check-layers.sh"
    }
    for (unit in known)
        if (!(unit in units))
            print "src/" unit ":1: is not there: take it off the list of check-layers.sh"
}
AWK
# shellcheck disable=SC2046  # names of source files hold no spaces
awk -f "$work/circles.awk" $(cat "$list") | sort >>"$found"

# ---- h
# The files that git tracks; in an unpacked archive, the files that it contains.
# The corpus is bytes, not text.
git ls-files | grep -v '^tests/fuzz/corpus/' >"$list" 2>/dev/null || :
if [ ! -s "$list" ]; then
    {
        find src handlers etc systemd tests doc scripts .ci -type f ! -path '*/corpus/*' 2>/dev/null |
            grep -E '\.(c|h|def|lua|sh|md|txt|yaml|conf|service)$|^(handlers|scripts|\.ci)/'
        ls README.md CONTRIBUTING.md Makefile.am configure.ac 2>/dev/null
    } | grep -v -e '^src/lua/lua_lib\.c$' -e '/\.deps/' >"$list" || :
fi
# The current folder, unless it is a path that texts may well name.
here=$(pwd -P)
case $here in
/usr/* | /etc/* | /var/* | /opt/*) here= ;;
/*/*) ;;
*) here= ;;
esac
cat >"$work/text.awk" <<'AWK'
function bad(reason) {
    printf "%s:%d: %s\n", FILENAME, FNR, reason
}
/[ \t\r]$/ { bad("white space at the end of the line") }
/(^|[^A-Za-z0-9_.~})\/-])\/(home|root|Users)\/[A-Za-z0-9._]/ { bad("path of a build machine") }
here != "" && (at = index($0, here)) > 0 &&
    (at == 1 || substr($0, at - 1, 1) !~ /[A-Za-z0-9_.~})\/-]/) &&
    substr($0, at + length(here), 1) !~ /[A-Za-z0-9_-]/ { bad("path of a build machine (" here ")") }
AWK
while read -r file; do
    if [ ! -f "$file" ] || [ -L "$file" ]; then continue; fi
    printf '%s\0' "$file"
done <"$list" >"$work/files"
# grep -I passes over a file with a byte of 0, which is not text.
xargs -0 -r grep -I -l -Z -e '' <"$work/files" >"$work/texts" || :
[ -s "$work/texts" ] || { echo "src:0: no text was found" >&2; exit 1; }
xargs -0 -r awk -v here="$here" -f "$work/text.awk" <"$work/texts" >>"$found"

if [ -s "$found" ]; then
    cat "$found"
    exit 1
fi
