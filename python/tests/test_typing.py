"""The types that the package declares are those that it has."""

import inspect
import os
import pathlib
import subprocess
import sys
from typing import Any

import pytest

import alluvium
from alluvium import _alluvium

ROOT = pathlib.Path(alluvium.__file__).parents[1]


def passes(*command: str) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "MYPY_CACHE_DIR": os.devnull}
    ran = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_the_package_is_typed_strictly() -> None:
    pytest.importorskip("mypy")
    passes("mypy", "--strict", "alluvium")


def test_the_stub_has_what_the_module_has(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("mypy")
    # Names of the stub alone, and one of the module alone.
    (tmp_path / "allowed").write_text(r"alluvium\._alluvium\.(__all__|ArrowArray|ArrowStream|Rows?)")
    (tmp_path / "mypy.ini").write_text("[mypy]\nignore_missing_imports = True\n")
    options = ["--concise", "--ignore-disjoint-bases", "--allowlist", str(tmp_path / "allowed")]
    passes("mypy.stubtest", "alluvium._alluvium", *options, "--mypy-config-file", str(tmp_path / "mypy.ini"))


def public(owner: Any) -> list[tuple[str, Any]]:
    return [(name, member) for name, member in vars(owner).items() if not name.startswith("_")]


CLASSES = [(name, member) for name, member in (*public(_alluvium), *public(alluvium)) if inspect.isclass(member)]
MEMBERS = [(f"{name}.{part}", member) for name, owner in CLASSES for part, member in public(owner) if callable(member) or inspect.isdatadescriptor(member)]


@pytest.mark.parametrize(("name", "member"), {name: (name, member) for name, member in (*CLASSES, *MEMBERS)}.values())
def test_everything_public_is_described(name: str, member: Any) -> None:
    text = inspect.getdoc(member) or ""
    assert len(text) > 5
    assert text.rstrip().endswith((".", "]", ")", "::")) or ">>>" in text


def test_the_names_of_the_package_are_there() -> None:
    assert len(alluvium.__all__) == len(set(alluvium.__all__))
    for name in alluvium.__all__:
        assert hasattr(alluvium, name)
    assert [name for name, member in CLASSES if issubclass(member, Exception) and name not in alluvium.__all__] == []


def test_errors_are_those_of_pep_249() -> None:
    for name in ("Data", "Integrity", "Internal", "NotSupported", "Operational", "Programming"):
        assert issubclass(getattr(alluvium, f"{name}Error"), alluvium.DatabaseError)
    assert issubclass(alluvium.DatabaseError, alluvium.Error) and issubclass(alluvium.InterfaceError, alluvium.Error)


def test_users_see_types(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("mypy")
    program = tmp_path / "program.py"
    program.write_text(
        "import alluvium\n"
        "with alluvium.memory(workers=2) as db:\n"
        "    db.insert('t', [(1,)])\n"
        "    for row in db.sql('SELECT 1'):\n"
        "        reveal_type(row)\n"
        "    for change in db.subscribe('t'):\n"
        "        reveal_type(change)\n"
        "    reveal_type(db.view('t').get(1))\n"
        "@alluvium.function\n"
        "def double(x: int) -> int:\n"
        "    return 2 * x\n"
        "reveal_type(double)\n"
    )
    environment = {**os.environ, "MYPYPATH": str(ROOT)}
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", os.devnull, str(program)]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    revealed = [line.split('"')[1].replace("builtins.", "") for line in ran.stdout.splitlines() if "Revealed" in line]
    assert revealed == ["tuple[Any, ...]", "alluvium._alluvium.Change", "tuple[Any, ...] | None", "alluvium._alluvium.Function"]
