"""The data that all engines read: Parquet files, which are the same for the same numbers of rows."""

import datetime
import pathlib
import subprocess
import sys

from part import Options

SEED = 20261128
BATCH = 10_000

# The columns of the tables of insert, query and reads.
COLUMNS = "id BIGINT, amount BIGINT, name VARCHAR, made TIMESTAMP"
KEYED = "id BIGINT PRIMARY KEY, amount BIGINT, name VARCHAR, made TIMESTAMP"


def write(options: Options, chapters: set[str]) -> None:
    """Writes the files that these chapters read, if they are not there."""
    options.folder.mkdir(parents=True, exist_ok=True)
    if chapters & {"insert", "query", "reads"} and not rows_file(options).exists():
        write_rows(options)
    if "nexmark" in chapters and not all(path.exists() for path in event_files(options).values()):
        write_events(options)


def rows_file(options: Options) -> pathlib.Path:
    return options.folder / f"rows-{options.rows}.parquet"


def event_files(options: Options) -> dict[str, pathlib.Path]:
    """Returns the file of each stream that the queries read."""
    return {name: options.folder / f"{name}-{options.events}-{BATCH}-10000.parquet" for name in ("auction", "bid")}


def write_rows(options: Options) -> None:
    import numpy
    import polars

    random = numpy.random.default_rng(SEED)
    letters = random.integers(97, 123, size=(options.rows, 12), dtype=numpy.uint8)
    names = letters.view("S12").ravel().astype("U12")
    polars.DataFrame(
        {
            "id": numpy.arange(options.rows, dtype=numpy.int64),
            "amount": random.integers(0, 1_000_000_000, size=options.rows),
            "name": polars.Series(names, dtype=polars.String),
            "made": polars.Series(1_700_000_000_000_000 + 1_000 * numpy.arange(options.rows)).cast(polars.Datetime("us")),
        }
    ).write_parquet(rows_file(options))


def write_events(options: Options) -> None:
    """Lets Alluvium's generator write the events: a Parquet file for each stream, with a row group for each batch."""
    command = [sys.executable, "-m", "alluvium", "nexmark", "--queries=q0", f"--events={options.events}"]
    command += [f"--epoch-rows={BATCH}", "--source=parquet", f"--directory={options.folder}"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def read_rows(options: Options, rows: int | None = None) -> object:
    """Reads rows as a frame of polars with one chunk."""
    import polars

    return polars.read_parquet(rows_file(options), n_rows=rows).rechunk()


def read_batches(options: Options) -> list[dict[str, object]]:
    """Reads the events as tables of pyarrow, by stream, batch by batch."""
    import pyarrow.parquet

    batches: list[dict[str, object]] = []
    for stream, path in event_files(options).items():
        file = pyarrow.parquet.ParquetFile(path)
        for group in range(file.metadata.num_row_groups):
            if group == len(batches):
                batches.append({})
            batches[group][stream] = file.read_row_group(group)
    return batches


def microseconds(time: datetime.datetime) -> int:
    return (time - datetime.datetime(1970, 1, 1)) // datetime.timedelta(microseconds=1)
