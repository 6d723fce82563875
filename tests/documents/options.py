#!/usr/bin/env python3
"""Every verb of `later` and every option that a document names is one that the help has.

Usage: tests/documents/options.py FILE...    (from the tree that is built)
"""
import functools
import re
import subprocess
import sys


@functools.lru_cache(None)
def help_of(*words):
    answer = subprocess.run(["./later", "help", *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return answer.stdout if answer.returncode == 0 else None


def commands(text):
    """-> what stands behind `later` in code, up to what is no longer its own"""
    text = text.replace("\\\n", " ")
    for code in re.findall(r"`([^`\n]+(?:\n[^`\n]+)?)`", text) + re.findall(r"^    (.*)$", text, flags=re.M):
        for command in re.findall(r"(?:^|[\s;|(])(?:\./)?later (?:--[a-z-]+ \S+ )*([a-z][^|;#]*)", code):
            yield re.split(r" -- |[;)>]|\$\(", command)[0]


def main():
    bad = seen = 0
    for path in sys.argv[1:]:
        text = re.sub(r"^```.*?^```", "", open(path).read(), flags=re.M | re.S)
        for command in commands(text):
            verb = re.match(r"[a-z-]+", command).group()
            options = re.findall(r"(?<![\w-])(--?[a-z][a-z-]*)", command)
            text_of = help_of(verb)
            missing = [o for o in options if text_of and not re.search(rf"(?<![\w-]){o}(?![\w-])", text_of + help_of())]
            seen += 1
            if text_of is None or missing:
                print(f"{path}: later {command}: {'no such verb' if text_of is None else 'no ' + ' '.join(missing)}")
                bad = 1
    print(f"{seen} commands name verbs and options that there are" if not bad else "the help has no such verb or option")
    sys.exit(bad or not seen)


if __name__ == "__main__":
    main()
