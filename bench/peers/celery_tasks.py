"""Celery: two processes, acknowledged early, 64 prefetched.

python3 celery_tasks.py MODE N SECONDS adds the jobs and prints how long that took; the worker is
started beside it (celery -A celery_tasks worker). Each start is a record in $RECORD, as record.h of the
C programs has it.
"""
import datetime
import json
import os
import random
import struct
import subprocess
import sys
import time

import celery
import redis

PORT = int(os.environ["REDIS_PORT"])
LEAD_SECONDS = {"late": 20, "herd": 20, "mem": 3600}
app = celery.Celery("celery_tasks", broker=f"redis://127.0.0.1:{PORT}/0")
app.conf.update(
    task_ignore_result=True,
    task_acks_late=False,
    worker_prefetch_multiplier=64,
    broker_connection_retry_on_startup=True,
)
record = None


@app.task
def noop(due, pad):
    global record
    started = time.time()
    if record is None:
        record = os.open(os.environ["RECORD"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    if os.environ["MODE"] == "exec":
        subprocess.run(["/bin/true"], check=True)
    os.write(record, struct.pack("=qq", int(due * 1e6), int(started * 1e6)))


def main():
    mode, n, span = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    server = redis.Redis(port=PORT)
    before = server.info("memory")["used_memory"]
    begin = time.time()
    start = begin + LEAD_SECONDS.get(mode, 0)
    pad = "x" * 100
    for i in range(n):
        due = {"late": start + random.random() * span, "herd": start}.get(mode, 0.0)
        if due:
            eta = datetime.datetime.fromtimestamp(due, datetime.timezone.utc)
            noop.apply_async((due, pad), eta=eta)
        else:
            noop.delay(0.0, pad)
    seconds = time.time() - begin
    used = server.info("memory")["used_memory"] - before
    print(json.dumps({"n": n, "seconds": seconds, "bytes_per_job": used / n}))


if __name__ == "__main__":
    main()
