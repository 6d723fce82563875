#!/usr/bin/env python3
"""Runs the commands of documents as a reader would type them, and compares what they print.

In a block of code a line `$ COMMAND` is typed, and the lines below it are what it prints; lines before the first such
line are typed, too, where the block begins with a command. Ids, numbers, times, hosts and spaces may differ. A line that
is only `…` stands for any lines, and output that is not shown is not compared. A command that only looks is repeated
until it prints that, since a document leaves out the waiting. The exit status is 0, or one that the comment behind the
command names. A block that begins with `info` is in the log of laterd. A command with `…` is a form of commands, and
what is ELSEWHERE is run by the tests that are named there.

A document without a Redis of its own has a world: two servers, and what stage.sh and stages/DOCUMENT.sh
put there.

Usage: tests/documents/run.py FILE[:N]...  (from the tree that is built; N: only the first N blocks; python3, redis-cli, jq)
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
DEADLINE = 60
ID = r"\bj[0-9a-z]{11}\b"
LOOKS = re.compile(r"\b(ls|explain|gates|stats|show|export|grep|top|HGETALL)\b")
TYPED = re.compile(
    r"(\./)?later(d|-web)? |redis-cli |REDISCLI_AUTH=|FCALL |printf |for |tx=|sudo |systemctl |journalctl |docker |"
    r"scripts/|mkdir |cat |cp |mv |ln |pkill |sleep |systemd-|install |sed |umask |apt-get |make |export |cc |chmod |\( |\{ printf |redis-server ")
# tests/install: packages, units and systems that boot. The image: tests/install/containers. The page: tests/web.
ELSEWHERE = re.compile(r"systemctl |systemd-|journalctl |docker |scripts/package|scripts/build --|apt-get |make install|"
                       r"later-web |umask |cp etc/")
# What a document calls by a name that is not there.
PLACES = {"redis://127.0.0.1:6379": "unix:{0}/redis.sock", "redis://old": "unix:{0}/redis.sock",
          "cluster://n1,n2": "unix:{0}/other.sock", "unix:/other.sock": "unix:{0}/other.sock",
          "/run/laterd-redis/redis.sock": "{0}/redis.sock", "redis-cli -h 127.0.0.1": "redis-cli -s {0}/redis.sock",
          "/usr/share/laterd": "{0}/share", "/usr/local/lib/laterd": "{0}", "/etc/laterd": "{0}/etc",
          "/etc/redis": "{0}/etc", "/srv/": "{0}/srv/", "/var/lib/prometheus": "{0}"}


def blocks(text):
    """-> the indented blocks of a document, each a list of lines"""
    text = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    for block in re.findall(r"(?:^    .*\n|^\n(?=    ))+", text, flags=re.M):
        lines = [line[4:] for line in block.split("\n")]
        while lines and not lines[-1]:
            lines.pop()
        if lines:
            yield lines


def commands(path):
    """-> the blocks of a document that are typed or are in the log"""
    for lines in blocks(open(path).read()):
        while lines and (not lines[0] or lines[0].startswith("# ")):
            lines.pop(0)
        if lines and not lines[0].startswith("info ") and not TYPED.match(lines[0]):
            while lines and not lines[0].startswith("$ "): # a file, or a script with a name
                lines.pop(0)
        if lines:
            yield lines


def steps(lines):
    """-> (command, what it prints: None: not shown)..."""
    typed, shown = [], None
    for line in lines:
        if typed and (typed[-1].endswith("\\") or not is_whole("\n".join(typed))):
            typed.append(line)
        elif line.startswith("$ "):
            if typed:
                yield "\n".join(typed), shown
            typed, shown = [line[2:]], []
        elif shown is not None:
            shown.append(line)
        elif line and not line.startswith("# "):
            if not TYPED.match(line):
                raise SystemExit(f"is this a command? Then TYPED has to know it: {line}")
            if typed:
                yield "\n".join(typed), None
            typed = [line]
    if typed:
        yield "\n".join(typed), shown


def is_whole(command):
    """Is nothing left open: a here-document, a loop, a pipe?"""
    begin = re.search(r"<<'(\w+)'", command)
    if begin:
        return command.rstrip("\n").endswith("\n" + begin.group(1))
    return "unexpected end of file" not in subprocess.run(["bash", "-n", "-c", command], stderr=subprocess.PIPE,
                                                          text=True).stderr


def plain(line):
    """A line without what differs each time"""
    line = re.sub(r"^\S+Z (?=(info|notice|warning|error) )", "", line) # of a log
    line = re.sub(ID, "ID", line)
    line = re.sub(r" on [\w.-]+ \(pid", " on HOST (pid", line)
    line = re.sub(r"(\(pid \d+ on )[\w.-]+", r"\1HOST", line)
    line = re.sub(r"\d{4}-\d\d-\d\d([ T][\d:.]+( ?[+-]\d\d:?\d\d|Z)?)?", "TIME", line)
    line = re.sub(r"(\b\d+(\.\d+)? ?(ms|s|m|h|d)\b ?)+", "N ", line)
    line = re.sub(r"[▁▂▃▄▅▆▇█]+", "#", line)
    line = re.sub(r"\b\d*[1-9]\d*\b" if re.search(r"\D", line) else r"\d{4,}", "N", line) # 0 stays
    return re.sub(r"[\s-]+", " ", line).strip()


def fits(shown, printed):
    """Are these lines in the output, in this order? Each begins a line there, or goes on where the one before ended."""
    joined = "\n" + "\n".join(plain(line) for line in printed.split("\n") if line.strip()) + "\n"
    at, goes_on = 0, False
    for line in (plain(line) for line in shown if line.strip()):
        if line == "…":
            goes_on = False
        elif goes_on and joined[at:].startswith(" " + line):
            at += len(line) + 1
        else:
            at = joined.find("\n" + line, at)
            if at < 0:
                return False
            at += len(line) + 1
            goes_on = True
    return True


def statuses(command):
    """-> the exit statuses that a command may have: those that its comment names, else 0"""
    comment = re.search(r"\s#\s(.*)", command)
    if not comment or not re.search(r"\bexit\b|^\d+:", comment.group(1)):
        return {0}
    return {int(n) for n in re.findall(r"(?:exit(?: status)? |^|[,;] |or )(\d{1,3})(?=\W|$)", comment.group(1))}


def is_form(command):
    """Is this no command, but the form of some?"""
    return "…" in command or re.search(r"\]\.\.\.", command)


class Reader:
    """Two terminals, and a folder in place of /tmp. A `with` block."""

    def __init__(self, document):
        self.folder = tempfile.mkdtemp(prefix="later-documents.")
        os.chmod(self.folder, 0o755) # some handlers run as other users
        self.log, self.daemon, self.more = os.path.join(self.folder, "log"), None, []
        self.ids, self.document, self.typed, self.elsewhere = {}, os.path.abspath(document), 0, 0
        self.stage = os.path.join(HERE, "stages", os.path.basename(document)[:-3] + ".sh")
        self.exports = f"WORLD='{self.folder}' DOCUMENT='{self.document}'\n. '{HERE}/stage.sh'\n"

    def __enter__(self):
        try:
            self.begin()
        except BaseException:
            self.__exit__()
            raise
        return self

    def begin(self):
        if "redis: embedded" not in "\n".join(line for lines in commands(self.document) for line in lines):
            self.exports += "in_world\n"
            if os.path.exists(self.stage):
                self.exports += f". '{self.stage}'\n"
            self.shell("raise")
            if os.path.exists(os.path.join(self.folder, "laterd.yaml")):
                self.start(f"laterd --config {self.folder}/laterd.yaml")
            self.shell("on_stage")

    def __exit__(self, *_):
        for process in [self.daemon] + self.more:
            if process and process.poll() is None:
                process.terminate()
                process.wait(DEADLINE)
        subprocess.run(self.bash("fall"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        shutil.rmtree(self.folder)

    def text(self, command):
        command = re.sub(ID, lambda m: self.ids.get(m.group(), "$ID"), command)
        command = command.replace("scripts/build && ", "") # the tree is built
        if self.folder not in command:
            command = command.replace("/tmp/", self.folder + "/")
        for name, place in PLACES.items():
            command = command.replace(name, place.format(self.folder))
        if re.match(r"later |FCALL ", command):
            command = re.sub(r"\[([^]|.]*)[^]]*\]", r"\1", command) # options, and the first of a choice
        command = re.sub(r"\b1795\d{12}\b", "$WORKER", command)
        command = re.sub(r"(?<![\w$'\"/-])(ID|FILE|QUEUE)(?![\w-])", r"$\1", command)
        return command

    def learn(self, shown, printed):
        """The ids of the document stand for those that were printed in their place."""
        self.ids.update(zip(re.findall(ID, "\n".join(shown)), re.findall(ID, printed)))

    def logged(self):
        return open(self.log).read() if os.path.exists(self.log) else ""

    def wait(self, what, condition):
        end = time.time() + DEADLINE
        while not condition():
            if time.time() > end or (self.daemon and self.daemon.poll() is not None):
                raise SystemExit(f"{self.document}: {what}: in vain. The log:\n{self.logged()[-3000:]}")
            time.sleep(0.05)

    def bash(self, command):
        return ["bash", "-c", self.exports + self.text(command)]

    def shell(self, command):
        answer = subprocess.run(self.bash(command), text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, timeout=DEADLINE)
        if answer.returncode not in statuses(command):
            raise SystemExit(f"{self.document}: $ {command}\nends with {answer.returncode}:\n{answer.stdout}")
        return answer.stdout

    def start(self, command):
        self.daemon = subprocess.Popen(self.bash("exec " + command), stdout=open(self.log, "w"),
                                       stderr=subprocess.STDOUT)
        self.wait("laterd starts", lambda: "event=registered" in self.logged())

    def type(self, command, shown):
        if re.match(r"(\./)?laterd --config", command):
            return self.start(re.sub(r"\s#.*", "", command).rstrip("& "))
        if command.rstrip().endswith("&"):
            self.more.append(subprocess.Popen(self.bash("exec " + command.rstrip("& ")), stdout=subprocess.DEVNULL))
            socket = re.search(r"--unixsocket (\S+)", self.text(command)).group(1) # a redis-server: nothing else stays
            return self.wait(command, lambda: os.path.exists(socket) or self.more[-1].poll())
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
                raise SystemExit(f"{self.document}: $ {command}\nprinted\n{printed}\nand the document says\n" +
                                 "\n".join(shown))
            time.sleep(0.1)
            printed = self.shell(command)
        return self.learn(shown or [], printed)


def run(path, most):
    found = list(commands(path))[:most]
    if not found:
        return
    with Reader(path) as reader:
        for lines in found:
            if lines[0].startswith("info "):
                for line in lines:
                    reader.wait(line, lambda line=line: fits([line], reader.logged()))
                continue
            for command, shown in steps(lines):
                if ELSEWHERE.match(command):
                    reader.elsewhere += 1
                elif not is_form(command):
                    reader.type(command, shown)
                    reader.typed += 1
    print(f"{path}: {reader.typed} commands, as it says; {reader.elsewhere} are run elsewhere")


def main():
    for argument in sys.argv[1:]:
        path, _, most = argument.partition(":")
        run(path, int(most or sys.maxsize))


if __name__ == "__main__":
    main()
