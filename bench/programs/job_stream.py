#!/usr/bin/env python3
"""The handler of the benchmarks as a stream process in Python, as a careful user would write it."""
import os
import sys


def main():
    os.write(1, b"later-stream 1 inflight=1024\n")
    pending = b""
    while True:
        chunk = os.read(0, 262144)
        if not chunk:
            return 0
        pending += chunk
        answers = []
        at = 0
        while True:
            end = pending.find(b"\n", at)
            if end < 0:
                break
            # "job id=ID queue=... len=N", N bytes of payload, a line end.
            header = pending[at:end]
            begin = end + 1
            behind = begin + int(header[header.rindex(b"=") + 1:]) + 1
            if behind > len(pending):
                break
            payload = pending[begin:behind - 1]  # what a real handler would use
            del payload
            answers.append(b"ok " + header[7:header.index(b" ", 7)])
            at = behind
        pending = pending[at:]
        if answers:
            answers.append(b"")
            view = b"\n".join(answers)
            while view:
                view = view[os.write(1, view):]


if __name__ == "__main__":
    sys.exit(main())
