#!/bin/sh
# Every relative link of a document leads to a file of the tree and, behind #, to a heading of it; and every
# document is linked from another one.
set -eu
cd "${LATER_SOURCE_DIR:-$(dirname "$0")/../..}"
exec python3 - <<'END'
import glob, os, re, sys

pages = glob.glob("*.md") + glob.glob("*/*.md") + glob.glob("*/*/*.md") + glob.glob("*/*/*/*.md")
pages = [p for p in pages if not p.startswith(("build-", "laterd-"))]
linked, bad = {"README.md", "NEWS.md"}, 0


def text_of(page):  # without blocks of code and code within a line
    text = re.sub(r"^(```|~~~).*?^\1", "", open(page).read(), flags=re.M | re.S)
    return re.sub(r"^    .*$", "", text, flags=re.M)


def anchors(page):
    names = set()
    for heading in re.findall(r"^#+ (.*)$", text_of(page), flags=re.M):
        heading = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        names.add(re.sub(r"[^\w\- ]", "", heading).replace(" ", "-"))
    return names


for page in pages:
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", text_of(page))):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        path = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
        linked.add(path)
        if not os.path.exists(path) or (anchor and anchor not in anchors(path)):
            print(f"{page}: nothing is at {target}")
            bad += 1
for page in pages:
    if page.startswith("doc/") and page not in linked:
        print(f"{page}: no document links to it")
        bad += 1
sys.exit(bad > 0)
END
