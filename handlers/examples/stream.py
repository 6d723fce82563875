#!/usr/bin/env python3
# stream.py: a worker for a queue with `mode: stream` (doc/stream.md). It counts the words of the
# payload. It runs 16 jobs at once, each in its thread. To try it out: payloads `fail`, `retry`,
# `dead`, `sleep 5`.
import re, sys, threading

INFLIGHT = 16
ASKED = {b"fail": ("fail", "asked to"), b"retry": ("retry", "1s later please"), b"dead": ("dead", "never")}
running = {}  # id -> the event that its cancel sets
reading, writing = threading.Lock(), threading.Lock()

def say(line):
    with writing:  # write whole lines, and flush: Python buffers output to a pipe
        sys.stdout.write(line + "\n")
        sys.stdout.flush()

def work(id, payload):
    """Returns the answer: a verb and a text."""
    text = payload.rstrip(b"\n")
    if text in ASKED:
        return ASKED[text]
    sleep = re.fullmatch(rb"sleep ([0-9]{1,4})", text)
    for i in range(int(sleep[1]) if sleep else 0):
        if running[id].wait(1):
            return "fail", "cancelled"
        say(f"progress {id} {i + 1} of {int(sleep[1])}")
    return "ok", f"{len(payload.split())} words in {len(payload)} bytes"

def take():
    """Returns the next job, None at the end of input. One thread waits here, the others work."""
    with reading:
        while header := sys.stdin.buffer.readline():
            what, *words = header.decode("latin-1").rstrip("\n").split(" ")
            if what == "job":
                job = dict(word.partition("=")[::2] for word in words)
                payload = sys.stdin.buffer.read(int(job["len"]))
                sys.stdin.buffer.read(1)  # the line feed after it
                running[job["id"]] = threading.Event()
                return job["id"], payload
            if what == "cancel" and (event := running.get(words[0])):  # none: answered already
                event.set()

def serve():
    while job := take():
        try:
            verb, text = work(*job)
        except Exception as e:
            verb, text = "fail", ascii(e)[:1000]  # ascii(): without line feeds
        del running[job[0]]
        say(f"{verb} {job[0]} {text}")

say(f"later-stream 1 inflight={INFLIGHT} cancel")
for _ in range(INFLIGHT + 1):  # one more, so that one thread always reads
    threading.Thread(target=serve).start()
