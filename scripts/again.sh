# For scripts/test and scripts/faults, which read it: the programs run side by side and look at clocks, so one that
# fails there is run again by itself. What fails twice has failed.

again= # those that were run again

# Non-zero when one failed twice, or nothing could be run.
run_tests() { # TARGET JOBS
    find . -name '*.trs' -delete
    make --quiet -j"$2" "$1" VERBOSE=1 && return
    again=$(find . -name '*.trs' -exec grep -El '^:test-result: (FAIL|ERROR)' {} + |
        sed 's|^\./||; s|\.trs$||' | tr '\n' ' ')
    # An assertion that fails jumps over what frees, and that is no leak; one of its own is there again.
    for failed in $again; do
        grep -ls 'ERROR: LeakSanitizer' tests/sanitizer.* | xargs -r grep -l "$failed\.c:" | xargs -r rm
    done
    [ -n "$again" ] && make --quiet check TESTS="$again" VERBOSE=1
}

tell_again() {
    [ -z "$again" ] || echo "Run again by themselves after a failure beside the others: ${again% }"
}
