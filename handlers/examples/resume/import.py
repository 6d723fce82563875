#!/usr/bin/env python3
"""Imports the rows of a CSV file, whose path is the payload, into an SQLite database beside it.

Killed at any moment, the next attempt goes on behind the rows that a checkpoint has told: the offset in the file. Each
hundred rows are one transaction, and are told when it is committed. A kill between the two imports these rows again, so the
first column is their key.
"""
import csv
import os
import sqlite3
import sys

path = sys.stdin.readline().rstrip("\n")
control = os.fdopen(int(os.environ["LATER_CONTROL_FD"]), "w")
db = sqlite3.connect(path + ".db")
db.execute("CREATE TABLE IF NOT EXISTS rows (key TEXT PRIMARY KEY, value TEXT)")


def commit(offset):
    db.commit()
    control.write(f"checkpoint {offset}\n")
    control.flush()


with open(path, encoding="utf-8", newline="") as file:
    file.seek(int(os.environ.get("LATER_CHECKPOINT", "0")))
    n = 0
    while line := file.readline():
        key, value = next(csv.reader([line]))[:2]
        db.execute("INSERT OR REPLACE INTO rows VALUES (?, ?)", (key, value))
        n += 1
        if n % 100 == 0:
            commit(file.tell())
    commit(file.tell())
