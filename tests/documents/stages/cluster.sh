# shellcheck shell=bash
stage() {
    later add mail --in 1h one
    later add mail --in 2h two
}
