#!/usr/bin/env python3
"""Writes random tables in random dialects of Python's csv, for `dialects.rs` to read: `dialects.py FOLDER COUNT SEED`.

FOLDER gets `0.csv` and so on, and `tables.jsonl` with the rows of each, whether the first are names, and whether a column
has values of another type than text.
"""

import csv
import json
import pathlib
import random
import sys

NAMES = ["id", "name", "Unit price", "created_at", "note", "city", "x"]
WORDS = ["river", "Ada", "it's", "naïve", '5"', "x_1", "C:\\new", "a/b", "N°7", "end.", "Müller-Lüdenscheidt", "100 %"]
SEPARATORS = [" ", ", ", "; ", " | ", ": ", "\n", "\r\n", ' "said" ', "' ", "\t"]


def text(rng, separators):
    return "".join(rng.choice(WORDS) + rng.choice(separators) for _ in range(rng.randint(1, 4))).strip()


# The first have values of another type than text.
KINDS = [
    lambda rng: str(rng.randint(-500, 5000)),
    lambda rng: f"{rng.uniform(-1000, 1000):.3f}",
    lambda rng: f"20{rng.randint(10, 29)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}",
    lambda rng: f"2024-05-{rng.randint(1, 28):02} {rng.randint(0, 23):02}:{rng.randint(0, 59):02}:00",
    lambda rng: f"{rng.randint(0, 99)},{rng.randint(0, 99):02}",
    lambda rng: rng.choice(["red", "green", "blue", ""]),
    lambda rng: text(rng, [" "]),
    lambda rng: text(rng, SEPARATORS),
    lambda rng: "".join(rng.choice("ab1 ,;|\t:'\"\\#~\n") for _ in range(rng.randint(1, 8))),
]
TYPED = 4


def table(rng):
    kinds = [rng.randrange(len(KINDS)) for _ in range(rng.randint(1, 7))]
    has_header = rng.random() < 0.75
    rows = [NAMES[: len(kinds)]] if has_header else []
    rows += [[KINDS[kind](rng) for kind in kinds] for _ in range(rng.randint(2, 60))]
    return {"has_header": has_header, "is_typed": any(kind < TYPED for kind in kinds), "rows": rows}


def dialect(rng):
    common = rng.random() < 0.75
    quoting = rng.choice([csv.QUOTE_MINIMAL] * 3 + [csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC, csv.QUOTE_NONE])
    escapes = quoting == csv.QUOTE_NONE or rng.random() < 0.2
    return {
        "delimiter": rng.choice(",;\t|" if common else ":~^ #\x01"),
        "quotechar": rng.choice("\"\"\"'"),
        "doublequote": not escapes,
        "escapechar": "\\" if escapes else None,
        "lineterminator": rng.choice(["\n", "\n", "\r\n", "\r"]),
        "quoting": quoting,
    }


def main():
    folder, count, seed = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    with open(folder / "tables.jsonl", "w", encoding="utf-8") as tables:
        for number in range(count):
            rng = random.Random(seed * 1_000_003 + number)
            made, how = table(rng), dialect(rng)
            start = rng.choice([""] * 6 + ["\ufeff", f"sep={how['delimiter']}{how['lineterminator']}"])
            if how["quoting"] == csv.QUOTE_NONE and len(made["rows"][0]) == 1:
                # A record of one empty field cannot be written.
                made["rows"] = [[field or "x"] for (field,) in made["rows"]]
            with open(folder / f"{number}.csv", "w", encoding="utf-8", newline="") as file:
                file.write(start)
                csv.writer(file, **how).writerows(made["rows"])
            tables.write(json.dumps(made | {"dialect": repr(how | {"start": start})}) + "\n")


main()
