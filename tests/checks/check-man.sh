#!/bin/sh
# Manual pages and completions, as built: they cause no warnings and list exactly what the programs
# list in their own texts. This asks the programs, not the tables from which the pages are made.
# Without mandoc, groff or zsh it leaves out the part that needs it, and says so.
set -eu
LC_ALL=C.UTF-8
export LC_ALL
cd "${LATER_SOURCE_DIR:-$(dirname "$0")/../..}"
build=$(cd "${LATER_BUILD_DIR:-.}" && pwd)
man=$build/man
bash_dir=$build/completion/bash
zsh_dir=$build/completion/zsh
# None of the commands below may reach a server.
LATER_REDIS_URL=unix:/nonexistent/redis.sock
HOME=/nonexistent
export LATER_REDIS_URL HOME

work=$(mktemp -d)
redis=
trap '[ -z "$redis" ] || kill "$redis"; rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
failed=$work/failed

has() {
    command -v "$1" >/dev/null || { echo "$1 is not installed: $2" && return 1; }
}

complain() {
    echo "$*"
    : >"$failed"
}

# same WHAT FILE OF-WHOM FILE OF-WHOM: the same lines in both
same() {
    sort -u "$2" >"$work/a"
    sort -u "$4" >"$work/b"
    [ -s "$work/a" ] || complain "$1: nothing was found in $3"
    for line in $(comm -23 "$work/a" "$work/b"); do
        complain "$1: $line is in $3, not in $5"
    done
    for line in $(comm -13 "$work/a" "$work/b"); do
        complain "$1: $line is in $5, not in $3"
    done
}

# ---- warnings

words_are_long='cannot adjust line$' # told by groff 1.23
written="later.1 later-web.8 laterd.8 laterd.yaml.5"
contracts="later-handlers.7 later-plugins.7 later-protocol.7 later-stream.7" # made of documents
pages="$written $contracts"
for page in $pages; do
    [ -s "$man/$page" ] || complain "$page was not built"
    ! grep -n '@[A-Z_]*@' "$man/$page" || complain "$page: something was not filled in"
done
if has mandoc "its warnings are not looked at"; then
    for page in $written; do
        # Left out: warnings about other pages that are not installed and about the operating system.
        mandoc -T lint -W style "$man/$page" 2>/dev/null |
            grep -v -e 'STYLE: referenced manual not found' -e 'STYLE: operating system explicitly' \
                >"$work/out" && complain "$(cat "$work/out")"
    done
    for page in $contracts; do
        # Left out: what lowdown writes behind each heading, without harm.
        mandoc -T lint -W warning "$man/$page" 2>/dev/null |
            grep -v 'WARNING: skipping paragraph macro: [LP]P after S[HS]' >"$work/out" &&
            complain "$(cat "$work/out")"
    done
fi
if has lexgrog "what apropos finds is not looked at"; then
    for page in $contracts; do
        lexgrog "$man/$page" | grep -q "\"${page%.7} - [a-z]" || complain "$page: apropos does not find it"
    done
fi
for page in $contracts; do
    name=$(echo "${page%.7}" | tr "[:lower:]" "[:upper:]")
    version=$("$build/laterd" --version | sed -n '1s/^\(laterd [^ ,]*\).*/\1/p')
    grep -q "^\.TH \"$name\" \"7\" \"[A-Z][a-z]* [0-9]*, 20[0-9]*\" \"$version\"" "$man/$page" ||
        complain "$page: its head is not of $version"
    ! grep -n -e ' <\\fI' -e '^\.UR' "$man/$page" || complain "$page: a link was left, or [words] before (others)"
    ! grep -n '\\e|' "$man/$page" || complain "$page: write no | into a cell of a table"
done
if has groff "its warnings are not looked at"; then
    for page in $pages; do
        groff -k -t -ww -mandoc -T utf8 -z "$man/$page" >"$work/all" 2>&1 || :
        grep -v "$words_are_long" "$work/all" >"$work/out" || :
        [ ! -s "$work/out" ] || complain "$page: $(cat "$work/out")"
    done
fi
if has man "its warnings are not looked at"; then
    for page in $pages; do
        MANWIDTH=80 man -l --warnings "$man/$page" 2>"$work/all" >"$work/page" ||
            complain "$page is not shown"
        grep -v "$words_are_long" "$work/all" >"$work/out" || :
        [ ! -s "$work/out" ] || complain "$page: $(cat "$work/out")"
        [ "$(wc -l <"$work/page")" -gt 50 ] || complain "$page: hardly anything is shown"
    done
fi

# ---- what the programs list in their own texts

# The rows of section $1 of a help text, without indentation.
rows() {
    awk -v section="$1" '
        /^[A-Z]/ { inside = $0 == section }
        inside && /^ ? ? ? ? ? ?[a-z-]/ && /^  / && !/^       / { sub(/^ */, ""); print }'
}

# The options of rows; "-n, --nonblock" are two.
options() {
    sed -n 's/^\(-[A-Za-z], \)\{0,1\}\(--[a-z-]*\).*/\1\2/p' | sed 's/, /\n/'
}

"$build/later" help | rows Verbs | awk '{ print $1 }' >"$work/verbs"
"$build/later" help | rows 'Options of every verb' | options >"$work/globals"
while read -r verb; do
    "$build/later" help "$verb" >"$work/help"
    # `help help` is the general help, without options of its own.
    rows Options <"$work/help" | options >"$work/options.$verb"
done <"$work/verbs"
"$build/laterd" --help | sed -n 's/^ *\(\(-[A-Za-z], \)\{0,1\}--\)/\1/p' | options >"$work/daemon"

# The parser knows every option. An option with a value takes --help as its value.
while read -r verb; do
    while read -r option; do
        "$build/later" "$verb" "$option" --help </dev/null >"$work/out" 2>&1 || :
        ! grep 'unknown option' "$work/out" || complain "later $verb does not take $option"
    done <"$work/options.$verb"
done <"$work/verbs"
while read -r option; do
    "$build/laterd" "$option" --help </dev/null >"$work/out" 2>&1 || :
    ! grep 'unknown option' "$work/out" || complain "laterd does not take $option"
done <"$work/daemon"

# ---- the pages

# The options in the list items from the heading "$1 $2" of page $3 to the next heading.
page_options() {
    awk -v heading="$1 $2" '
        /^\.S[hs]/ { inside = $0 == heading }
        inside && /^\.It Fl/ {
            gsub(/\\-/, "-")
            for (i = 2; i <= NF; i++)
                if ($i == "Fl") print "-" $(i + 1)
        }' "$3"
}

awk '/^\.Sh/ { inside = $2 == "VERBS" } inside && /^\.Ss/ { gsub(/\\-/, "-"); print $2 }' \
    "$man/later.1" >"$work/page"
same 'verbs' "$work/verbs" 'later help' "$work/page" 'later(1)'
page_options .Ss 'Options of every verb' "$man/later.1" >"$work/page"
same 'global options' "$work/globals" 'later help' "$work/page" 'later(1)'
while read -r verb; do
    page_options .Ss "$(echo "$verb" | sed 's/-/\\\\\\\\-/g')" "$man/later.1" >"$work/page"
    [ -s "$work/options.$verb" ] || [ -s "$work/page" ] || continue
    same "options of $verb" "$work/options.$verb" "later help $verb" "$work/page" 'later(1)'
done <"$work/verbs"
page_options .Sh DESCRIPTION "$man/laterd.8" >"$work/page"
same 'options of laterd' "$work/daemon" 'laterd --help' "$work/page" 'laterd(8)'

# Settings with their scopes: "defaults/timeout", "limits/burst"; those of the daemon have none.
: >"$work/empty.yaml"
env -i PATH="$PATH" "$build/laterd" --config "$work/empty.yaml" --print-config | awk '
    function put(name) { print (scope != "" ? scope "/" : "") name }
    /^(defaults|limits|queues|schedules|# schedules):/ {
        # The settings of limits, queues and schedules are listed in the comment above.
        section = $1 == "#" ? $2 : $1
        for (i = 0; i < n; i++)
            if ($1 != "defaults:") print substr(section, 1, length(section) - 1) "/" said[i]
        scope = $1 == "defaults:" ? "defaults" : ""
        top = ""
        n = 0
        next
    }
    /^# [a-z_.]+: [A-Z]/ { said[n++] = substr($2, 1, length($2) - 1); next }
    /^$/ { n = 0 }
    /^web:$/ { scope = ""; top = "web"; next }
    /^  [a-z_]+: / && top != "" { put(top "." substr($1, 1, length($1) - 1)); next }
    /^[a-z_]+:/ { scope = top = ""; put(substr($1, 1, length($1) - 1)) }
    /^  [a-z_.]+:$/ { group = substr($1, 1, length($1) - 1); next }
    /^  (# )?[a-z_]+: / && scope != "" {
        if ($1 == "#" && $2 != "handler:") next
        name = $1 == "#" ? $2 : $1
        put(substr(name, 1, length(name) - 1))
    }
    /^    [a-z_]+: / && scope != "" { put(group "." substr($1, 1, length($1) - 1)) }' >"$work/settings"
awk '
    /^\.S[hs]/ { scope = "" }
    /^\.Sh SETTINGS OF QUEUES/ { scope = "defaults/" }
    /^\.Ss Of one queue/ { scope = "queues/" }
    /^\.Sh LIMITS/ { scope = "limits/" }
    /^\.Sh SCHEDULES/ { scope = "schedules/" }
    /^\.It Ic/ { print scope $3 }' "$man/laterd.yaml.5" >"$work/page"
same 'settings' "$work/settings" 'laterd --print-config' "$work/page" 'laterd.yaml(5)'

# later-protocol(7): the functions and error codes of the library.
"$build/later" setup --print >"$work/library"
sed -n "s/^register('\(later_[a-z_]*\)'.*/\1/p; s/^ *function_name = '\(later_[a-z_]*\)',/\1/p" "$work/library" | grep -v '^later_v[0-9]' \
    >"$work/functions"
grep -o '\\fBlater_[a-z_]*' "$man/later-protocol.7" | sed 's/^\\fB//' >"$work/page"
same 'functions' "$work/functions" 'the library' "$work/page" 'later-protocol(7)'
grep -o 'ELATER_[A-Z]*' "$work/library" >"$work/codes"
sed -n 's/^\\fB\(ELATER_[A-Z]*\)\\fR$/\1/p' "$man/later-protocol.7" >"$work/page"
same 'error codes' "$work/codes" 'the library' "$work/page" 'later-protocol(7)'

# cells HEADING PAGE: the words in the first cells of the tables below it, a row a line
cells() {
    awk -v heading="$1" '
        /^\.S[HS]/ { title = substr($0, 5); if (title == "") getline title; inside = title == heading }
        /^\.T[SE]/ { first = 0 }
        inside && first { gsub(/\\f[BR]/, ""); print; first = 0 }
        $0 == "T{" { first = 1 }' "$2"
}

# later-handlers(7), later-stream(7): all that the daemon tells a handler, and that it takes from a stream.
# What every process of a queue gets is left out.
cells Environment "$man/later-handlers.7" | tr ' ' '\n' |
    grep -v -e '^LATER_SHARDS*$' -e '^LATER_WORKER$' -e '^variable$' >"$work/page"
sed -n 's/.*envp, &n, "\([A-Z_]*\)".*/\1/p' src/serve/invocation.c >"$work/variables"
same 'variables' "$work/variables" 'src/serve/invocation.c' "$work/page" 'later-handlers(7)'
cells 'A job' "$man/later-stream.7" | tr ' ' '\n' | grep -v '^word$' >"$work/page"
sed -n -e 's/.*(out, "\(job\)\{0,1\} \([a-z_]*\)=".*/\2/p' -e 's/.*add_word(out, "\([a-z_]*\)".*/\1/p' \
    src/serve/invocation.c >"$work/words"
same 'words of a header' "$work/words" 'src/serve/invocation.c' "$work/page" 'later-stream(7)'
cells Answers "$man/later-stream.7" | sed 's/ .*//' | grep -v '^line$' >"$work/page"
sed -n '/ words\[\] = {/,/};/p' src/run/stream/stream_line.c | grep -o '"[a-z][a-z]*"' | tr -d '"' >"$work/words"
same 'answers' "$work/words" 'src/run/stream/stream_line.c' "$work/page" 'later-stream(7)'

# later(1): the exit statuses, as in doc/cli.md.
awk '/^## / { inside = $0 == "## Exit statuses" }
    inside && /^\| [0-9]/ { sub(/^\| /, ""); sub(/ \|.*/, ""); gsub(/ \+ /, "+"); print }' doc/cli.md |
    tr ' ' '\n' >"$work/statuses"
awk '/^\.Sh/ { inside = $0 == ".Sh EXIT STATUS" }
    inside && $1 == ".It" && $2 != 130 && $2 != 141 { gsub(/ \+ /, "+"); print $2 }' "$man/later.1" >"$work/page"
same 'exit statuses' "$work/statuses" 'doc/cli.md' "$work/page" 'later(1)'

# ---- a server with names for the completions

# with_names COMMAND...: run it where `later` finds them
with_names() {
    env LATER_REDIS_URL="unix:$work/redis.sock" PATH="$build:$PATH" "$@"
}

if has redis-server "no names are completed"; then
    redis-server --port 0 --unixsocket "$work/redis.sock" --save '' --dir "$work" >/dev/null &
    redis=$!
    tries=0
    until with_names later setup >/dev/null 2>&1 || [ "$tries" -ge 100 ]; do
        tries=$((tries + 1))
        sleep 0.1
    done
    {
        job=$(with_names later add mailing-list x --in 1h 2>/dev/null)
        with_names later add --namespace other some-queue x
        with_names later limits set smtp:eu semaphore 5
        with_names later limits set "it's\$(touch\${IFS}$work/evil)" semaphore 5
        with_names later limits set gateway rate 5/1m
        with_names later schedule add nightly every 1h --queue mailing-list x
        with_names later batch add import:7 --then report x
        with_names later topic subscribe 'order.*' mailing-list
    } >"$work/out" 2>&1 || complain "no names: $(cat "$work/out")"
fi

# ---- bash: load the completion and ask it

if has bash "its completion is not asked"; then
    cat >"$work/ask.bash" <<'END'
. "$1/later"
. "$1/laterd"
# Lines of words; the last one, which is being typed, ends with a dot that is taken off.
while read -r -a COMP_WORDS; do
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    COMP_WORDS[COMP_CWORD]=${COMP_WORDS[COMP_CWORD]%.}
    COMPREPLY=()
    "_${COMP_WORDS[0]}"
    printf '%s\n' "${COMPREPLY[@]}"
done
END
    # ask WORD...: what bash offers for it
    ask() {
        echo "$*" | bash --norc "$work/ask.bash" "$bash_dir" | sed '/^$/d'
    }
    # offers WANTED WORD...: exactly these
    offers() {
        wanted=$1
        shift
        ask "$@" | sort -u >"$work/offered"
        # shellcheck disable=SC2086 # a list of words
        printf '%s\n' $wanted | sed '/^$/d' | sort -u >"$work/wanted"
        cmp -s "$work/offered" "$work/wanted" ||
            complain "bash offers for $*: $(tr '\n' ' ' <"$work/offered")"
    }
    ask later . >"$work/bash"
    same 'verbs' "$work/verbs" 'later help' "$work/bash" 'the bash completion'
    ask later -. >"$work/bash"
    same 'global options' "$work/globals" 'later help' "$work/bash" 'the bash completion'
    while read -r verb; do
        # All words after this verb belong to redis-cli.
        [ "$verb" != cli ] || continue
        ask later "$verb" -. >"$work/bash"
        sort -u "$work/options.$verb" "$work/globals" >"$work/both"
        same "options of $verb" "$work/both" "later help $verb" "$work/bash" 'the bash completion'
    done <"$work/verbs"
    ask laterd -. >"$work/bash"
    same 'options of laterd' "$work/daemon" 'laterd --help' "$work/bash" 'the bash completion'
    offers 'ls limits lock' later l.
    offers 'run run-now' later --redis unix:/x ru.
    offers 'ls limits lock' later --json --namespace = a l.
    offers 'due running parked dead done all' later ls mail --state .
    offers 'due dead done' later ls --state = d.
    offers 'due running parked dead done all' later ls --state =.
    offers 'drop replace move' later add mail --unique-mode .
    offers '' later ls --limit .
    offers 'set delete' later limits .
    offers 'semaphore rate' later limits set smtp .
    offers 'setup sem seen' later help se.
    offers '' later add mail -- --.
    offers '' later cli --.
    offers '' later nonsense x.
    offers 'printf' later lock x -n -- printf.
    : >"$work/a-file"
    offers "$work/a-file" later add mail --from "$work/a-f."
    offers "$work/a-file" later --config = "$work/a-f."
    offers "$work/a-file" laterd --config "$work/a-f."
    offers "$work/a-file" laterd -c "$work/a-f."
    offers '--check-config' laterd --ch.
fi

# ---- bash on a terminal: names

# What is typed, and behind | what is completed.
cat >"$work/names" <<END
later ls mail|ing-list
later add mail|ing-list
later --namespace other ls so|me-queue
later --namespace=other ls so|me-queue
later --redis unix:$work/redis.sock --namespace other ls so|me-queue
later ls --redis=unix:$work/redis.sock mail|ing-list
later batch show imp|ort:7
later batch show import:|7
later add x --batch imp|ort:7
later add x --then first,mai|ling-list
later add x --sem=smtp:|eu
later limits delete smtp|:eu
later throttle ga|teway
later schedule pause ni|ghtly
later find ni|ghtly
later show j|${job#j}
later cancel $job j|${job#j}
END
sed 's/|.*//' "$work/names" >"$work/typed"
if [ -n "$redis" ] && has bash "names are not completed" && has zsh "bash is not asked on a terminal"; then
    cat >"$work/bash.zsh" <<'END'
# Types each line of the file $2 in a bash with the completion $1, with a tab at its end. There,
# `later` writes its words to $3.
zmodload zsh/zpty
zpty ask bash --norc -i
zpty -w ask "PS1=; bind 'set bell-style none'; . ${(q)1}; later() { echo later \"\$@\" >>${(q)3}; }"
while IFS= read -r line; do
    zpty -w -n ask "$line"$'\t\n'
done <$2
zpty -w ask exit
zpty -r -m ask out '*no such text*'
END
    with_names env TERM=xterm timeout 60 zsh -f "$work/bash.zsh" "$bash_dir/later" "$work/typed" \
        "$work/completed" </dev/null >/dev/null 2>&1 || :
    sed 's/|//' "$work/names" >"$work/filled"
    sed 's/ $//' "$work/completed" 2>/dev/null | diff - "$work/filled" >"$work/out" ||
        complain "bash completes otherwise: $(cat "$work/out")"
    # Names that a shell would carry out are quoted.
    echo 'later sem it' >"$work/typed"
    : >"$work/completed"
    with_names env TERM=xterm timeout 60 zsh -f "$work/bash.zsh" "$bash_dir/later" "$work/typed" \
        "$work/completed" </dev/null >/dev/null 2>&1 || :
    grep -qF "it's\$(touch" "$work/completed" || complain "bash quotes otherwise: $(cat "$work/completed")"
    [ ! -e "$work/evil" ] || complain "bash has carried out a name"
fi

# ---- zsh: evaluate the specifications alone; then complete in a shell on a terminal

if has zsh "its completion is not asked"; then
    zsh -n "$zsh_dir/_later" || complain "_later: zsh does not take it"
    zsh -n "$zsh_dir/_laterd" || complain "_laterd: zsh does not take it"
    cat >"$work/ask.zsh" <<'END'
# A specification a line.
_arguments() { print -rl -- "$@" }
_describe() { print -rl -- "${(@P)2}" }
functions[complete]="$(<$1)"
shift
if (($# == 0)); then
    complete
else
    typeset -a globals
    complete >/dev/null
    "$@"
fi
END
    specs() {
        zsh -f "$work/ask.zsh" "$@" 2>>"$work/zsh.err"
    }
    zsh_options() {
        sed -n -e 's/^([^)]*)//' -e 's/^\(--*[A-Za-z-]*\)=\{0,1\}\[.*/\1/p'
    }
    specs "$zsh_dir/_later" _later_verbs | sed 's/:.*//' >"$work/zsh"
    same 'verbs' "$work/verbs" 'later help' "$work/zsh" 'the zsh completion'
    specs "$zsh_dir/_later" | zsh_options >"$work/zsh"
    same 'global options' "$work/globals" 'later help' "$work/zsh" 'the zsh completion'
    while read -r verb; do
        specs "$zsh_dir/_later" _later_verb "$verb" | zsh_options >"$work/zsh"
        [ -s "$work/options.$verb" ] || [ -s "$work/zsh" ] || continue
        same "options of $verb" "$work/options.$verb" "later help $verb" "$work/zsh" \
            'the zsh completion'
    done <"$work/verbs"
    specs "$zsh_dir/_laterd" | zsh_options >"$work/zsh"
    same 'options of laterd' "$work/daemon" 'laterd --help' "$work/zsh" 'the zsh completion'
    [ ! -s "$work/zsh.err" ] || complain "zsh: $(cat "$work/zsh.err")"

    cat >"$work/terminal.zsh" <<'END'
# Completes each line of the file $2 and writes what became of it to $3.
zmodload zsh/zpty
cat >$3.rc <<RC
PS1=; fpath=(${(q)1} \$fpath)
autoload -Uz compinit; compinit -u -D
zle-line-init() {
    local line
    while IFS= read -r line; do
        BUFFER=\$line CURSOR=\$#line
        zle complete-word
        print -r -- "\$BUFFER" >>${(q)3}
    done <${(q)2}
    BUFFER=exit
    zle accept-line
}
zle -N zle-line-init
RC
zpty ask zsh -f -i
zpty -w ask ". ${(q)3}.rc"
# Read until that shell ends.
zpty -r -m ask out '*no such text*'
END
    cat >"$work/wanted" <<'END'
later li|mits
later --json --namespace x run-|now
later help expl|ain
later ls mail --state r|unning
later ls --state=pa|rked
later ls --json mail --state r|unning
later --json ls --namespace=x --state r|unning
later limits s|et
later limits set x sem|aphore
later add mail x --unique-mode mo|ve
later lock x -- env a-prog|ram
later lock -n x a-prog|ram
laterd --ch|eck-config
laterd --config a-fi|le
later add mail --from a-fi|le
END
    [ -z "$redis" ] || cat "$work/names" >>"$work/wanted"
    rm -f "$work/completed"
    sed 's/|.*//' "$work/wanted" >"$work/typed"
    (mkdir "$work/terminal" && cd "$work/terminal" && : >a-file && : >a-program && chmod 755 a-program &&
        with_names env PATH="$PWD:$build:$PATH" TERM=xterm timeout 60 zsh -f "$work/terminal.zsh" \
            "$zsh_dir" "$work/typed" "$work/completed") </dev/null >/dev/null 2>&1 || :
    sed 's/|//' "$work/wanted" >"$work/filled"
    sed 's/ $//' "$work/completed" 2>/dev/null | diff - "$work/filled" >"$work/out" ||
        complain "zsh completes otherwise: $(cat "$work/out")"
fi

[ ! -e "$failed" ]
