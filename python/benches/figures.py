"""Figures of Alluvium's Python package beside DuckDB and Pathway: one run, one table.

    pip install alluvium-VERSION.whl polars pandas pyarrow duckdb
    python python/benches/figures.py --pathway-python VENV/bin/python > figures.md

Pathway needs an environment of its own (``python -m venv VENV; VENV/bin/pip install pathway``). Without ``--pathway-python`` its column is
empty.

What is measured, each part by a module of this folder:

- ``insert``: rows of BIGINT, BIGINT, VARCHAR (12 characters) and TIMESTAMP into a table in memory, from a frame of polars or pandas and from a list
  of tuples, until a query can read them
- ``query``: ``SELECT *`` of that table into a frame of polars, and as a list of tuples
- ``reads``: rows by key from a table with a primary key, and from a materialized ``GROUP BY``
- ``changes``: commits of one row by one thread, whose changes to a view another thread receives
- ``nexmark``: q4, q9 and q18 of the Nexmark benchmark, maintained over batches of 10,000 events
- ``install``: the time to import and to install the package, and its size

How:

- A figure is the median of three runs (``--runs``), followed by the least and the greatest. Engines take turns: one run of each, then the next.
- Each run is a process of its own, which warms up on a small table before the clock starts, and reads the same Parquet files as the others.
- Every engine has two threads (``--threads``) and keeps everything in memory. Preparing data and checking answers is outside the clock.
- The engines' answers are compared. If they differ, the program says where, and prints no table.
- *Memory* is by how much the resident memory of the process grows at its peak, from just before the measured part.
- The two last columns say how many times as fast Alluvium is, or how many times as small: more than 1 is better for Alluvium.

A release build and an idle machine count; figures of small sizes say little. ``--rows 100000 --events 50000 --reads 20000`` is a quick check.
``--only insert,nexmark.q4`` runs some parts. The program needs no network: ``install`` is measured for the wheels that are named.
"""

import argparse
import datetime
import importlib
import json
import os
import pathlib
import platform
import re
import subprocess
import sys
import tempfile

import data
import table
from part import ENGINES, Options, Part

CHAPTERS = ["insert", "query", "reads", "changes", "nexmark", "install"]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measures Alluvium's Python package beside DuckDB and Pathway.")
    parser.add_argument("--rows", type=int, default=10_000_000, help="rows of the tables of insert and query")
    parser.add_argument("--events", type=int, default=1_000_000, help="events of Nexmark")
    parser.add_argument("--reads", type=int, default=1_000_000, help="reads by key")
    parser.add_argument("--runs", type=int, default=3, help="runs of each engine and part")
    parser.add_argument("--threads", type=int, default=2, help="threads of each engine")
    parser.add_argument("--only", default="", help=f"parts, such as nexmark.q4, or chapters: {', '.join(CHAPTERS)}")
    parser.add_argument("--engines", default=",".join(ENGINES), help="the engines to run")
    parser.add_argument("--pathway-python", default="", help="the interpreter of an environment that has Pathway")
    parser.add_argument("--wheels", default="", help="wheels to install, separated by commas, with the names that they have on an index")
    parser.add_argument("--directory", default="", help="where the data is, and stays [default: a temporary folder]")
    parser.add_argument("--child", nargs=3, metavar=("PART", "ENGINE", "FILE"), help=argparse.SUPPRESS)
    return parser.parse_args()


def parts(only: str) -> dict[str, Part]:
    """Returns the parts to run, by ``chapter.part``."""
    chosen = [name for name in only.split(",") if name]
    found = {}
    for chapter in CHAPTERS:
        for name, part in importlib.import_module(chapter).PARTS.items():
            full = f"{chapter}.{name}"
            if not chosen or chapter in chosen or full in chosen:
                found[full] = part
    names = {*CHAPTERS, *(f"{chapter}.{name}" for chapter in CHAPTERS for name in importlib.import_module(chapter).PARTS)}
    if unknown := [name for name in chosen if name not in names]:
        sys.exit(f"no part is named {', '.join(unknown)}; there are {', '.join(sorted(names))}")
    return found


def check(asked: argparse.Namespace) -> None:
    """Ends the program for engines and wheels that there are not."""
    engines = asked.engines.split(",")
    if unknown := [engine for engine in engines if engine not in ENGINES]:
        sys.exit(f"no engine is named {', '.join(unknown)}; there are {', '.join(ENGINES)}")
    for wheel in filter(None, asked.wheels.split(",")):
        if not pathlib.Path(wheel).is_file():
            sys.exit(f"there is no wheel {wheel}")
        if pathlib.Path(wheel).name.partition("-")[0] not in engines:
            sys.exit(f"{wheel} is the wheel of none of {', '.join(engines)}: a wheel is called NAME-VERSION-….whl")


def run(name: str, engine: str, options: Options, python: str) -> dict[str, object]:
    """Runs a part in a process of its own; returns its figures and facts, or the error."""
    with tempfile.TemporaryDirectory() as directory:
        report = pathlib.Path(directory, "report.json")
        command = [python, __file__, *options.arguments(), "--child", name, engine, str(report)]
        threads = str(options.threads)
        environment = {**os.environ, "POLARS_MAX_THREADS": threads, "PATHWAY_THREADS": threads, "PATHWAY_PROCESSES": "1"}
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if ran.returncode == 0 and report.exists():
            return json.loads(report.read_text())
        lines = [line for line in ran.stderr.splitlines() if re.match(r"[\w.]*(Error|Exception)\b", line)]
        return {"error": lines[-1] if lines else f"exit status {ran.returncode}", "log": ran.stderr}


def child(name: str, engine: str, report: str, options: Options) -> None:
    chapter, _, part = name.partition(".")
    part = importlib.import_module(chapter).PARTS[part]
    pathlib.Path(report).write_text(json.dumps(getattr(part, engine)(options)))
    # Without what interpreters do at their end: Pathway's threads may take long.
    sys.stdout.flush()
    os._exit(0)


def differences(name: str, runs: dict[str, list[dict[str, object]]]) -> list[str]:
    """Returns what engines do not agree on."""
    known: dict[str, tuple[str, object]] = {}
    different = []
    for engine, reports in runs.items():
        for report in reports:
            for fact, value in report.get("facts", {}).items():
                of, expected = known.setdefault(fact, (engine, value))
                if value != expected:
                    different.append(f"{name}: {fact} is {expected} of {of}, and {value} of {engine}")
    return different


def machine() -> str:
    """Returns what the figures were measured on."""
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    cpu = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "?")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    load = os.getloadavg()[0]
    return (
        f"{datetime.date.today()}, Python {platform.python_version()}, {os.cpu_count()} cores of {cpu}, "
        f"{memory:.0f} GiB; load of the machine at the start: {load:.1f}"
    )


def main() -> None:
    asked = arguments()
    if asked.child:
        name, engine, report = asked.child
        return child(name, engine, report, Options.of(asked))
    check(asked)
    # Before data is made, which takes all processors.
    began = machine()

    with tempfile.TemporaryDirectory() as temporary:
        asked.directory = asked.directory or temporary
        options = Options.of(asked)
        todo = parts(asked.only)
        data.write(options, {name.partition(".")[0] for name in todo})
        pythons = {engine: sys.executable for engine in asked.engines.split(",")}
        if not asked.pathway_python:
            pythons.pop("pathway", None)
        elif "pathway" in pythons:
            pythons["pathway"] = asked.pathway_python

        results: dict[str, dict[str, list[dict[str, object]]]] = {}
        different = []
        for name, part in todo.items():
            runs = results[name] = {engine: [] for engine in pythons if getattr(part, engine)}
            for turn in range(1 if part.once else asked.runs):
                for engine, reports in runs.items():
                    if reports and "error" in reports[0]:
                        continue
                    reports.append(run(name, engine, options, pythons[engine]))
                    report = {key: value for key, value in reports[-1].items() if key != "log"}
                    print(f"{name} {engine} {turn + 1}: {report}", file=sys.stderr, flush=True)
                    if "error" in reports[-1]:
                        print(reports[-1]["log"], file=sys.stderr, flush=True)
            different += differences(name, runs)

    if different:
        sys.exit("\n".join(different))
    print(began + "\n")
    print(table.markdown(todo, results, options))


if __name__ == "__main__":
    main()
