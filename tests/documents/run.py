#!/usr/bin/env python3
"""Runs the commands of documents as a reader would type them, and compares what they print.

In a block of code a line `$ COMMAND` is typed, and the lines below it are what it prints; lines before the first such
line are typed, too. Ids, numbers, hosts and spaces may differ. A line that is only `…` stands for any lines, and output
that is not shown is not compared. A command that only looks is repeated until it prints that, since a document leaves
out the waiting. A block that begins with `info` is in the log of laterd.

Usage: tests/documents/run.py FILE[:N]...    (from the tree that is built; N: only the first N blocks; python3, redis-cli)
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

DEADLINE = 60
ID = r"\bj[0-9a-z]{11}\b"
LOOKS = re.compile(r"\b(ls|explain|gates|stats|show|export|grep)\b")


def blocks(text):
    """-> the indented blocks of a document, each a list of lines"""
    text = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    for block in re.findall(r"(?:^    .*\n|^\n(?=    ))+", text, flags=re.M):
        lines = [line[4:] for line in block.split("\n")]
        while lines and not lines[-1]:
            lines.pop()
        while lines and not lines[0]:
            lines.pop(0)
        if lines:
            yield lines


def steps(lines):
    """-> (command, what it prints: None: not shown)..."""
    typed, shown = [], None
    for line in lines:
        if not line and shown is None and not typed:
            continue
        if typed and (typed[-1].endswith("\\") or not is_whole("\n".join(typed))):
            typed.append(line)
        elif line.startswith("$ "):
            if typed:
                yield "\n".join(typed), shown
            typed, shown = [line[2:]], []
        elif shown is not None:
            shown.append(line)
        else:
            if typed:
                yield "\n".join(typed), None
            typed = [line]
    if typed:
        yield "\n".join(typed), shown or None


def is_whole(command):
    """Is nothing left open: a here-document?"""
    begin = re.search(r"<<'(\w+)'", command)
    return not begin or command.rstrip("\n").endswith("\n" + begin.group(1))


def plain(line):
    line = re.sub(ID, "ID", line)
    line = re.sub(r" on [\w.-]+ \(pid", " on HOST (pid", line)
    line = re.sub(r"\d{4}-\d\d-\d\d[ T][\d:.]+( \+\d{4}|Z)?", "TIME", line)
    line = re.sub(r"\b\d+(\.\d+)? ?(ms|s|m|h)\b( \d+ ?(ms|s)\b)?", "N", line)
    line = re.sub(r"\d+", "N", line)
    return re.sub(r"[\s-]+", " ", line).strip()


def fits(shown, printed):
    """Are these lines in the output, in this order, the first one at its beginning?"""
    have, at = [plain(line) for line in printed.split("\n") if line.strip()], 0
    joined = " ".join(have)
    for line in (plain(line) for line in shown if line.strip()):
        if line == "…":
            continue
        found = joined.find(line, at)
        if found < 0:
            return False
        at = found + len(line)
    return True


class Reader:
    """Two terminals, and a folder in place of /tmp. A `with` block."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="later-documents.")
        self.log, self.daemon, self.more = os.path.join(self.folder, "log"), None, []
        self.exports, self.ids = f"export TMPDIR='{self.folder}'\n", {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in [self.daemon] + self.more:
            if process and process.poll() is None:
                process.terminate()
                process.wait()
        shutil.rmtree(self.folder)

    def text(self, command):
        command = re.sub(ID, lambda m: self.ids.get(m.group(), m.group()), command)
        command = command.replace("scripts/build && ", "") # the tree is built
        return command.replace("/tmp/", self.folder + "/")

    def learn(self, shown, printed):
        """The ids of the document stand for those that were printed in their place."""
        self.ids.update(zip(re.findall(ID, "\n".join(shown)), re.findall(ID, printed)))

    def logged(self):
        return open(self.log).read() if os.path.exists(self.log) else ""

    def wait(self, what, condition):
        end = time.time() + DEADLINE
        while not condition():
            if time.time() > end or (self.daemon and self.daemon.poll() is not None):
                raise SystemExit(f"{what}: in vain. The log:\n{self.logged()[-3000:]}")
            time.sleep(0.05)

    def bash(self, command):
        return ["bash", "-c", self.exports + self.text(command)]

    def shell(self, command):
        answer = subprocess.run(self.bash(command), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                timeout=DEADLINE)
        if answer.returncode != 0:
            raise SystemExit(f"$ {command}\nends with {answer.returncode}:\n{answer.stdout}")
        return answer.stdout

    def start(self, command):
        self.daemon = subprocess.Popen(self.bash("exec " + command), stdout=open(self.log, "w"),
                                       stderr=subprocess.STDOUT)
        self.wait("laterd starts", lambda: "event=registered" in self.logged())

    def type(self, command, shown):
        if re.match(r"\./laterd --config", command):
            return self.start(command.rstrip("& "))
        if command.rstrip().endswith("&"):
            self.more.append(subprocess.Popen(self.bash("exec " + command.rstrip("& ")), stdout=subprocess.DEVNULL))
            time.sleep(1)
            return None
        if re.match(r"pkill -HUP", command):
            before = self.logged().count("event=reload result=done")
            self.daemon.send_signal(1)
            return self.wait("laterd reads its configuration", lambda: self.logged().count("event=reload result=done") > before)
        if command.startswith("export "):
            self.exports += self.text(command) + "\n"
            return None
        end = time.time() + DEADLINE
        printed = self.shell(command)
        while shown and not fits(shown, printed):
            if time.time() > end or not LOOKS.search(command):
                raise SystemExit(f"$ {command}\nprinted\n{printed}\nand the document says\n" + "\n".join(shown))
            time.sleep(0.1)
            printed = self.shell(command)
        return self.learn(shown or [], printed)


def main():
    for argument in sys.argv[1:]:
        path, _, most = argument.partition(":")
        n = 0
        with Reader() as reader:
            for lines in list(blocks(open(path).read()))[:int(most or sys.maxsize)]:
                if lines[0].startswith("info "):
                    for line in lines:
                        reader.wait(line, lambda line=line: plain(line) in " ".join(map(plain, reader.logged().split("\n"))))
                    continue
                for command, shown in steps(lines):
                    reader.type(command, shown)
                    n += 1
        print(f"{path}: {n} commands, as it says")


if __name__ == "__main__":
    main()
