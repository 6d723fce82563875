"""beanstalkd, in memory: one connection that puts, reserves and deletes in pipelines of 100.

python3 beanstalk.py MODE N SECONDS, with beanstalkd at $BEANSTALKD_PORT. Its delays are whole seconds.
"""
import json
import math
import os
import random
import socket
import sys
import time

PIPELINE = 100
LEAD_SECONDS = 3


class Connection:
    def __init__(self):
        self.socket = socket.create_connection(("127.0.0.1", int(os.environ["BEANSTALKD_PORT"])))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.lines = self.socket.makefile("rb")

    def send(self, commands):
        self.socket.sendall(b"".join(commands))

    def answer(self, word):
        line = self.lines.readline().split()
        if line[0] != word:
            raise SystemExit(f"beanstalkd said {line}, not {word}")
        return line

    def job(self):
        line = self.answer(b"RESERVED")
        return line[1], self.lines.read(int(line[2]) + 2)


def put_all(connection, dues):
    for at in range(0, len(dues), PIPELINE):
        batch = dues[at:at + PIPELINE]
        commands = []
        for due in batch:
            body = b"%d " % due + b"x" * 100
            delay = max(0, math.ceil(due - time.time())) if due else 0
            commands.append(b"put 1 %d 60 %d\r\n%s\r\n" % (delay, len(body), body))
        connection.send(commands)
        for _ in batch:
            connection.answer(b"INSERTED")


def run_all(connection, n, per_call):
    late, first, done = [], None, 0
    while done < n:
        count = min(per_call, n - done)
        connection.send([b"reserve\r\n"] * count)
        ids = []
        for _ in range(count):
            job, body = connection.job()
            now = time.time()
            first = first or now
            due = int(body.split()[0])
            if due:
                late.append(round((now - due) * 1000, 3))
            ids.append(job)
        connection.send([b"delete %s\r\n" % job for job in ids])
        for _ in ids:
            connection.answer(b"DELETED")
        done += count
    return time.time() - first, late


def main():
    mode, n, span = sys.argv[1], int(sys.argv[2]), int(float(sys.argv[3]))
    connection = Connection()
    start = int(time.time()) + LEAD_SECONDS
    dues = [0] * n
    if mode == "late":
        dues = [start + random.randrange(max(1, span)) for _ in range(n)]
    elif mode == "herd":
        dues = [start] * n
    begin = time.time()
    put_all(connection, dues)
    if mode == "add":
        print(json.dumps({"n": n, "seconds": time.time() - begin}))
        return
    seconds, late = run_all(connection, n, PIPELINE if mode == "drain" else 1)
    print(json.dumps({"n": n, "seconds": seconds, "late_ms": late}))


if __name__ == "__main__":
    main()
