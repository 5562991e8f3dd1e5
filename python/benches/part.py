"""What the parts of the benchmark share: their options, what they measure, the clock and the memory."""

from __future__ import annotations

import argparse
import pathlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Self

ENGINES = ["alluvium", "duckdb", "pathway"]

# As many rows as go through Python's objects, one by one.
TUPLES = 1_000_000


@dataclass
class Options:
    """The options that the process of a part gets."""

    rows: int
    events: int
    reads: int
    threads: int
    wheels: str
    directory: str

    @classmethod
    def of(cls, asked: argparse.Namespace) -> Options:
        return cls(**{name: getattr(asked, name) for name in cls.__dataclass_fields__})

    def arguments(self) -> list[str]:
        return [f"--{name}={getattr(self, name)}" for name in self.__dataclass_fields__]

    @property
    def tuples(self) -> int:
        return min(self.rows, TUPLES)

    @property
    def folder(self) -> pathlib.Path:
        return pathlib.Path(self.directory)


@dataclass
class Measure:
    """A row of the table."""

    label: str
    unit: str
    more_is_better: bool = False


# What a part returns: ``{"figures": {measure: number}, "facts": {name: what all engines must agree on}}``.
Run = Callable[[Options], dict[str, object]]


@dataclass
class Part:
    """A part of the benchmark: what it measures, and how it runs on each engine that can do it."""

    measures: dict[str, Measure]
    alluvium: Run | None = None
    duckdb: Run | None = None
    pathway: Run | None = None
    # Whether it repeats its measurements itself.
    once: bool = False
    # Remarks below the table.
    remarks: list[str] = field(default_factory=list)


class Clock:
    """Measures the seconds of a ``with`` block, and by how many MiB the memory of the process grows in it."""

    seconds = 0.0
    mebibytes = 0.0

    def __enter__(self) -> Self:
        # Sets the peak to what is resident now.
        pathlib.Path("/proc/self/clear_refs").write_text("5")
        self.resident = resident("VmRSS")
        self.began = time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = time.perf_counter() - self.began
        self.mebibytes = resident("VmHWM") - self.resident


def resident(which: str) -> float:
    """Returns the resident memory of the process in MiB: ``VmRSS`` now, ``VmHWM`` at its peak."""
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith(which + ":"):
            return int(line.split()[1]) / 1024
    raise LookupError(which)


def duckdb_connection(options: Options) -> object:
    """Opens DuckDB in memory."""
    import duckdb

    return duckdb.connect(config={"threads": options.threads})


def alluvium_database(options: Options) -> object:
    """Opens Alluvium in memory."""
    import alluvium

    return alluvium.memory(workers=options.threads)
