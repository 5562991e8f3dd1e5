"""How long it takes to import and to install a package, and how large it is.

Importing is what ``python -X importtime`` says, the median of nine processes. The size is that of the package's own files, without byte code; what it
requires comes on top, and is given in a row of its own. Installing is ``pip install --no-index FILE.whl`` in a new virtual environment,
with the program of the README (or the same in SQL of DuckDB) to its first answer; it needs ``--wheels``, and a package that requires no others.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import pathlib
import re
import subprocess
import sys
import tempfile
import time

from part import Measure, Options, Part

PROCESSES = 9

README = pathlib.Path(__file__).parents[1] / "README.md"

DUCKDB = """
import duckdb
db = duckdb.connect()
db.execute("CREATE TABLE bid (auction BIGINT NOT NULL, price BIGINT NOT NULL)")
db.execute("INSERT INTO bid VALUES (1, 10), (1, 30), (2, 20)")
print(db.execute("SELECT auction, COUNT(*) AS bids, MAX(price) AS price FROM bid GROUP BY auction").fetchall())
"""


def program(module: str) -> str:
    """Returns a program that ends with its first answer."""
    if module == "duckdb":
        return DUCKDB
    code = re.search(r"```python\n(.*?)```", README.read_text(), re.DOTALL).group(1)
    # To the snapshot of the view.
    return code[: code.index("len(next(changes))")] + "print(list(next(changes)))"


def importing(module: str) -> list[float]:
    """Returns the milliseconds of imports in processes of their own; the first one, which reads files, is left out."""
    times = []
    for _ in range(PROCESSES + 1):
        ran = subprocess.run([sys.executable, "-X", "importtime", "-c", f"import {module}"], capture_output=True, text=True, check=True)
        [line] = [line for line in ran.stderr.splitlines() if line.split("|")[-1].strip() == module and "|" in line]
        times.append(int(line.split("|")[1]) / 1e3)
    return times[1:]


def files_of(distribution: importlib.metadata.Distribution) -> float:
    """Returns the size of a package's files in MiB."""
    paths = [pathlib.Path(distribution.locate_file(file)) for file in distribution.files or []]
    return sum(path.stat().st_size for path in paths if path.suffix != ".pyc" and path.is_file()) / 2**20


def required(name: str, found: dict[str, importlib.metadata.Distribution]) -> dict[str, importlib.metadata.Distribution]:
    """Adds a package and all that it requires here."""
    from pip._vendor.packaging.requirements import Requirement

    normal = re.sub(r"[-_.]+", "-", name).lower()
    if normal in found:
        return found
    try:
        found[normal] = importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return found
    for line in found[normal].requires or []:
        requirement = Requirement(line)
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            required(requirement.name, found)
    return found


def size(module: str) -> dict[str, float]:
    found = required(module, {})
    if found and found[module].files and not (found[module].read_text("direct_url.json") or "").count('"editable"'):
        sizes = {name: files_of(distribution) for name, distribution in found.items()}
        return {"size": sizes[module], "all": sum(sizes.values()), "packages": len(sizes)}
    # A folder that is on the path, and not installed.
    folder = pathlib.Path(importlib.util.find_spec(module).origin).parent
    own = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc") / 2**20
    return {"size": own, "all": own, "packages": 1}


def installing(module: str, wheel: pathlib.Path) -> float:
    """Returns the seconds from the installation of a wheel in a new environment to the first answer."""
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run([sys.executable, "-m", "venv", directory], check=True)
        python = str(pathlib.Path(directory, "bin", "python"))
        began = time.perf_counter()
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-index", str(wheel)], check=True, capture_output=True)
        subprocess.run([python, "-I", "-c", program(module)], check=True, capture_output=True)
        return time.perf_counter() - began


def run(module: str, options: Options) -> dict[str, object]:
    figures = {"import": importing(module), **{name: [value] for name, value in size(module).items()}}
    wheels = [pathlib.Path(wheel).resolve() for wheel in options.wheels.split(",") if wheel]
    for wheel in wheels:
        if wheel.name.startswith(f"{module}-"):
            figures["install"] = [installing(module, wheel) for _ in range(3)]
    return {"figures": figures, "facts": {}}


PARTS = {
    "package": Part(
        {
            "import": Measure("import", "ms"),
            "size": Measure("size of the installed package", "MiB"),
            "all": Measure("the same with all that it requires", "MiB"),
            "packages": Measure("packages that this installs", "packages"),
            "install": Measure("`pip install FILE.whl` to the first answer", "s"),
        },
        alluvium=lambda options: run("alluvium", options),
        duckdb=lambda options: run("duckdb", options),
        pathway=lambda options: run("pathway", options),
        once=True,
    )
}
