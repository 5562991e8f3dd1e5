"""Reports the steps of a client as lines of JSON."""

import json
import os

HOST = os.environ["PGHOST"]
PORT = int(os.environ["PGPORT"])
USER = os.environ["PGUSER"]
DATABASE = os.environ["PGDATABASE"]

# The columns and the first row of the table `sample` of schema.sql, as texts.
COLUMNS = ["id", "flag", "small", "whole", "single", "double", "amount", "name", "bytes", "day", "at", "moment", "instant", "list"]
RELATIONS = {"place", "sample"}


def report(name, ok, detail=""):
    print(json.dumps({"step": name, "ok": ok, "detail": str(detail)}), flush=True)


def step(name):
    """Runs the function that it decorates as a step: it works if nothing is raised."""

    def run(work):
        try:
            detail = work()
        except Exception as error:
            report(name, False, f"{type(error).__name__}: {error}")
        else:
            report(name, True, "" if detail is None else detail)
        return work

    return run


def same(found, expected):
    if found != expected:
        raise AssertionError(f"{found!r} instead of {expected!r}")


def holds(found, expected):
    """Checks that each of the expected values is there, beside others."""
    missing = set(expected) - set(found)
    if missing:
        raise AssertionError(f"{sorted(missing)} missing in {sorted(found)}")
