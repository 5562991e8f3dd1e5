"""Prints the reference of the package as a page of Markdown: ``python reference.py > ../docs/reference/python.md``.

Descriptions are docstrings. Signatures are those of the sources, and of the stub for what is compiled.
"""

import ast
import inspect
import pathlib
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import alluvium
from alluvium import _alluvium, _errors, dbapi

# The sections of the page, and what is in each.
SECTIONS = {
    "Databases": ["open", "memory", "connect", "Database"],
    "Results": ["Result", "Table"],
    "Changes": ["Subscription", "Change"],
    "Rows by key": ["View"],
    "Transactions and sessions": ["Transaction", "Session"],
    "Functions": ["function", "Function"],
    "Sources and sinks": ["Source", "Sink"],
    "Notebooks": ["Live", "Plan"],
    "What a database tells": ["RelationInfo", "Progress", "State"],
}
INTERFACE = ["connect", "Connection", "Cursor", "TypeObject", "DateFromTicks", "TimeFromTicks", "TimestampFromTicks"]

# What a class can do besides its calls, by the method that is there for it.
ABILITIES = {
    "__iter__": "iteration",
    "__aiter__": "`async for`",
    "__len__": "`len()`",
    "__getitem__": "`[…]`",
    "__call__": "calls",
    "__enter__": "`with`",
    "__arrow_c_stream__": "Arrow's PyCapsule interface",
}
# Calls of the package itself.
INTERNAL = {"settle", "ask_to_stop"}

STUB = ast.parse((pathlib.Path(alluvium.__file__).parent / "_alluvium.pyi").read_text())

Definition = ast.FunctionDef | ast.AsyncFunctionDef


def page() -> str:
    """Returns the whole page."""
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines()).rstrip("\n") + "\n")


def lines() -> Iterator[str]:
    yield "# Python reference"
    yield ""
    yield "<!-- Printed by python/reference.py from the docstrings of the package: change these. -->"
    yield ""
    yield "Everything below is in the module `alluvium`. The [guide](../guide/python.md) shows it at work."
    yield ""
    yield from contents()
    rows = (ast.get_docstring(STUB) or "").split("\n\n")[1]
    yield f"`Rows`: {shown(rows.removeprefix('Whatever is called rows below is '), alluvium, '')} `Row`: a tuple of values, in the order of the columns."
    for title, names in SECTIONS.items():
        yield from section(title)
        for name in names:
            yield from entry(alluvium, name)
    yield from section("Errors")
    yield shown(inspect.getdoc(_errors) or "", alluvium, "")
    yield ""
    yield from errors(_errors.Error, 0)
    yield from section("The interface of PEP 249")
    yield "In the module `alluvium.dbapi`."
    yield ""
    yield shown(inspect.getdoc(dbapi) or "", dbapi, "")
    yield ""
    yield from constants()
    for name in INTERFACE:
        yield from entry(dbapi, name)


def contents() -> Iterator[str]:
    for title, names in SECTIONS.items():
        yield f"- [{title}](#{anchor(title)}): " + ", ".join(f"[`{name}`](#{anchor(heading(alluvium, name))})" for name in names)
    yield "- [Errors](#errors)"
    interface = ", ".join(f"[`{name}`](#{anchor(heading(dbapi, name))})" for name in INTERFACE[:3])
    yield f"- [The interface of PEP 249](#the-interface-of-pep-249): {interface}"
    yield ""


def section(title: str) -> Iterator[str]:
    yield from ("", f"## {title}", "")


def heading(module: ModuleType, name: str) -> str:
    """The heading of what a module has."""
    if module is dbapi:
        return f"dbapi.{name}"
    return name if isinstance(getattr(module, name), type) else f"alluvium.{name}"


def anchor(title: str) -> str:
    """The anchor of a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def entry(module: ModuleType, name: str) -> Iterator[str]:
    """A class or a function."""
    described = getattr(module, name)
    yield from ("", f"### {heading(module, name)}", "")
    if not isinstance(described, type):
        yield f"`{signature(name, definition(described))}`"
        yield ""
        yield shown(inspect.getdoc(described) or "", module, "")
        return
    yield shown(inspect.getdoc(described) or "", module, name)
    yield ""
    abilities = [text for method, text in ABILITIES.items() if method in defined(described)]
    if abilities:
        yield f"Supports {', '.join(abilities)}."
        yield ""
    yield from properties(module, described)
    yield from methods(module, described)


def properties(module: ModuleType, described: type) -> Iterator[str]:
    found = [(name, node) for name, node in defined(described).items() if is_public(name) and is_property(node)]
    if not found:
        return
    yield "| property | type | |"
    yield "|---|---|---|"
    for name, node in found:
        text = shown(documentation(described, name), module, described.__name__).replace("\n", " ").replace("|", "\\|")
        returned = ast.unparse(node.returns).replace("|", "\\|") if node.returns is not None else ""
        yield f"| `{name}` | `{returned}` | {text} |"
    yield ""


def methods(module: ModuleType, described: type) -> Iterator[str]:
    for name, node in defined(described).items():
        if not is_public(name) or is_property(node):
            continue
        yield from (f"#### {heading(module, described.__name__)}.{name}", "")
        yield f"`{signature(name, node)}`"
        yield ""
        yield shown(documentation(described, name), module, described.__name__)
        yield ""


def errors(class_: type[Exception], depth: int) -> Iterator[str]:
    text = shown(inspect.getdoc(class_) or "", alluvium, class_.__name__).replace("\n", "\n" + "  " * (depth + 1))
    yield f"{'  ' * depth}- `{class_.__name__}`: {text}"
    for below in class_.__subclasses__():
        if below.__module__ == _errors.__name__:
            yield from errors(below, depth + 1)


def constants() -> Iterator[str]:
    """The constants that have a comment of ``#:``."""
    source = inspect.getsource(dbapi)
    texts = source.splitlines()
    yield "| constant | |"
    yield "|---|---|"
    for node in ast.parse(source).body:
        comment = texts[node.lineno - 2]
        if isinstance(node, ast.Assign) and comment.startswith("#: ") and isinstance(node.targets[0], ast.Name):
            value = f" = {ast.unparse(node.value)}" if isinstance(node.value, ast.Constant) else ""
            yield f"| `{node.targets[0].id}{value}` | {shown(comment.removeprefix('#: '), dbapi, '')} |"


def defined(described: type) -> dict[str, Definition]:
    """The methods and properties of a class: those of a compiled base class first, then its own, then those of other base classes."""
    classes = [class_ for class_ in described.__mro__ if class_.__module__.partition(".")[0] == "alluvium"]
    found = {item.name: item for class_ in classes if is_compiled(class_) for item in body(class_)}
    for class_ in classes:
        if not is_compiled(class_):
            for item in body(class_):
                # A class does what its own definition says, in the place of the one that it overrides.
                if item.name not in found or class_ is described:
                    found[item.name] = item
    return found


def is_compiled(class_: type) -> bool:
    return class_.__module__ in ("alluvium", _alluvium.__name__)


def body(class_: type) -> list[Definition]:
    if is_compiled(class_):
        nodes = [node for node in STUB.body if isinstance(node, ast.ClassDef) and node.name == class_.__name__]
    else:
        nodes = [node for node in ast.parse(inspect.getsource(class_)).body if isinstance(node, ast.ClassDef)]
    return [item for node in nodes for item in node.body if isinstance(item, Definition)]


def definition(function: Any) -> Definition:
    node = ast.parse(inspect.getsource(function)).body[0]
    assert isinstance(node, Definition)
    return node


def is_public(name: str) -> bool:
    return not name.startswith("_") and name not in INTERNAL


def is_property(node: Definition) -> bool:
    return any(isinstance(decorator, ast.Name) and decorator.id == "property" for decorator in node.decorator_list)


def documentation(described: type, name: str) -> str:
    return inspect.getdoc(getattr(described, name)) or ""


def signature(name: str, node: Definition) -> str:
    """A signature as it is called."""
    returned = "" if node.returns is None else f" -> {ast.unparse(node.returns)}"
    return f"{name}({', '.join(parameters(node.args))}){returned}"


def parameters(arguments: ast.arguments) -> Iterator[str]:
    placed = arguments.posonlyargs + arguments.args
    defaults: list[ast.expr | None] = [None] * (len(placed) - len(arguments.defaults)) + arguments.defaults
    for number, (argument, default) in enumerate(zip(placed, defaults)):
        if number > 0 or argument.arg not in ("self", "cls"):
            yield parameter(argument, default)
        if number + 1 == len(arguments.posonlyargs):
            yield "/"
    if arguments.vararg is not None:
        yield f"*{parameter(arguments.vararg, None)}"
    elif arguments.kwonlyargs:
        yield "*"
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults):
        yield parameter(argument, default)
    if arguments.kwarg is not None:
        yield f"**{parameter(arguments.kwarg, None)}"


def parameter(argument: ast.arg, default: ast.expr | None) -> str:
    annotation = "" if argument.annotation is None else f": {ast.unparse(argument.annotation)}"
    if default is None:
        return f"{argument.arg}{annotation}"
    return f"{argument.arg}{annotation} = {ast.unparse(default)}"


def shown(text: str, module: ModuleType, class_: str) -> str:
    """A docstring as Markdown."""
    text = re.sub(r":(?:func|meth|class|mod):`~?([^`]+)`", lambda role: link(role[1], module, class_), text)
    text = re.sub(r"`([^`<]+) <([^>`]+)>`_", r"[\1](\2)", text)
    text = text.replace("``", "`")
    # Examples are code until the next empty line.
    return re.sub(r"^>>> .*?(?=\n\n|\Z)", r"```pycon\n\g<0>\n```", text, flags=re.MULTILINE | re.DOTALL)


def link(target: str, module: ModuleType, class_: str) -> str:
    """A link to what a docstring names."""
    name = target.removeprefix("alluvium.")
    if name == "dbapi":
        return "[`alluvium.dbapi`](#the-interface-of-pep-249)"
    found = resolved(name, module, class_)
    if found is None:
        raise LookupError(f"{class_ or module.__name__}: there is no {target}")
    return f"[`{target}`](#{found})"


def resolved(name: str, module: ModuleType, class_: str) -> str | None:
    first, _, rest = name.partition(".")
    for place in (module, alluvium):
        described = getattr(place, first, None)
        if isinstance(described, type) and issubclass(described, _errors.Error):
            return "errors"
        if isinstance(described, type) and rest and hasattr(described, rest):
            return anchor(f"{heading(place, first)}.{rest}")
        if described is not None and not rest:
            return anchor(heading(place, first))
    if class_ and hasattr(getattr(module, class_), name):
        return anchor(f"{heading(module, class_)}.{name}")
    return None


if __name__ == "__main__":
    print(page(), end="")
