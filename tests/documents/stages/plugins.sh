# shellcheck shell=bash
# The plug-in as the document has it.
stage() {
    mkdir plugins
    sed -n '/^    #include/,/^    };\{0,1\}$/{/^    [$]/q;s/^    //p}' "$DOCUMENT" > hello.c
}

cc() { command cc -I"$SOURCE/src/run/plugin" "$@"; }
sudo() { "$@"; }
