"""Runs notebooks without a server: ``python run.py [NOTEBOOK]…``; all of this folder, if none is named.

A notebook fails with the first cell that raises, and then so does this. It needs IPython.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent


def cells(notebook: pathlib.Path) -> list[str]:
    """Returns the code of a notebook, cell by cell."""
    content = json.loads(notebook.read_text())
    return ["".join(cell["source"]) for cell in content["cells"] if cell["cell_type"] == "code"]


def run(notebook: pathlib.Path) -> None:
    """Runs all cells of a notebook, in this process."""
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance()
    for number, code in enumerate(cells(notebook), start=1):
        result = shell.run_cell(code, store_history=True)
        if not result.success:
            sys.exit(f"{notebook.name}: cell {number} has failed")


def main() -> int:
    names = sys.argv[1:]
    if names[:1] == ["--here"]:
        run(pathlib.Path(names[1]))
        return 0
    notebooks = [pathlib.Path(name).resolve() for name in names] or sorted(HERE.glob("*.ipynb"))
    failed = 0
    for notebook in notebooks:
        with tempfile.TemporaryDirectory() as directory:
            # Each has a process of its own, which leaves nothing here.
            environment = {**os.environ, "IPYTHONDIR": directory, "MPLBACKEND": "agg"}
            command = [sys.executable, __file__, "--here", str(notebook)]
            ran = subprocess.run(command, cwd=directory, env=environment, check=False)
        print(f"{notebook.name}: {'ok' if ran.returncode == 0 else 'failed'}")
        failed += ran.returncode != 0
    return 1 if failed or not notebooks else 0


if __name__ == "__main__":
    sys.exit(main())
