# Sourced by scripts/test and scripts/faults. Test programs run side by side and depend on the
# clock, so a program that fails there is run again alone. A program that fails twice has failed.
# With LATER_NO_AGAIN nothing is run again: a program that fails has failed.

again= # the programs that were run again

# Returns non-zero if a program failed twice or nothing could be run.
run_tests() { # TARGET JOBS
    find . -name '*.trs' -delete
    make --quiet -j"$2" "$1" VERBOSE=1 && return
    [ -z "${LATER_NO_AGAIN-}" ] || return 1
    again=$(find . -name '*.trs' -exec grep -El '^:test-result: (FAIL|ERROR)' {} + |
        sed 's|^\./||; s|\.trs$||' | tr '\n' ' ')
    # A failed assertion jumps over the code that frees, which is not a leak, so remove the report.
    # A real leak is reported again.
    for failed in $again; do
        grep -ls 'ERROR: LeakSanitizer' "tests/sanitizer.$(basename "$failed")".* | xargs -r rm
    done
    [ -n "$again" ] && make --quiet check TESTS="$again" VERBOSE=1
}

tell_again() {
    [ -z "$again" ] || echo "Run again by themselves after a failure beside the others: ${again% }"
}
