"""Plans of views."""

from __future__ import annotations

import html
import re
import textwrap
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from . import _cell, _name

if TYPE_CHECKING:
    from ._database import Database

# A line: an operator, then what is known of its rows and the state that it keeps, in brackets.
_LINE = re.compile(r"(.*) \[((?:unique: |append-only|keeps: ).*)\]")

# Lengths in pixels.
_LETTER, _LINE_HEIGHT = 7.3, 16
_PADDING, _COLUMN_GAP, _ROW_GAP = 10, 24, 34
# The letters of a line of a box.
_LETTERS = 44


class Plan:
    """How a view is maintained: :meth:`Database.plan` makes one.

    Notebooks show it as a picture: each operator is a box, and arrows are the way of its rows. In a box are also the keys by which its rows are
    unique, and the state that it keeps.
    """

    def __init__(self, text: str) -> None:
        self._text = text.rstrip("\n")

    @classmethod
    def of(cls, database: Database, view: str) -> Plan:
        """Returns the plan of a view."""
        return cls(database.sql(f"EXPLAIN VIEW {_name.quoted(view)}").text or "")

    @property
    def text(self) -> str:
        """The plan as text: an operator a line, its inputs indented below it."""
        return self._text

    def svg(self) -> str:
        """Returns the plan as a picture, in the colours of the text around it."""
        roots = _parsed(self._text)
        width: float = _PADDING
        for root in roots:
            width = _place(root, width) + _COLUMN_GAP
        width = max(width - _COLUMN_GAP, _PADDING) + _PADDING
        layers = _layers(roots)
        top: float = _PADDING
        for layer in layers:
            for node in layer:
                node.top = top
            top += max(node.height for node in layer) + _ROW_GAP
        height = top - _ROW_GAP + _PADDING if layers else 2 * _PADDING
        nodes = [node for layer in layers for node in layer]
        arrows = [_arrow(child, node) for node in nodes for child in node.inputs]
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="0 0 {width:.0f} {height:.0f}" style="max-width: 100%" '
            'fill="currentColor" font-family="ui-monospace, Menlo, Consolas, monospace" font-size="12">'
            f"<title>{_escaped(self._text)}</title>"
            f"{''.join(arrows)}{''.join(map(_box, nodes))}</svg>"
        )

    def _repr_svg_(self) -> str:
        return self.svg()

    def _repr_html_(self) -> str:
        # Notebooks show a picture of SVG apart from the page, where it does not know the colours of the text.
        return self.svg()

    def __repr__(self) -> str:
        return self._text


@dataclass
class _Node:
    """An operator, and where its box is."""

    operator: list[str]
    known: list[str]
    depth: int
    inputs: list[_Node] = field(default_factory=list)
    left: float = 0
    top: float = 0

    @property
    def width(self) -> float:
        return max(map(_cell.width, [*self.operator, *self.known])) * _LETTER + 2 * _PADDING

    @property
    def height(self) -> float:
        return (len(self.operator) + len(self.known)) * _LINE_HEIGHT + 2 * _PADDING

    @property
    def middle(self) -> float:
        return self.left + self.width / 2


def _parsed(text: str) -> list[_Node]:
    """The nodes of an indented tree."""
    roots: list[_Node] = []
    path: list[_Node] = []
    for line in text.splitlines():
        content = line.lstrip(" ")
        if not content:
            continue
        depth = len(line) - len(content)
        while path and path[-1].depth >= depth:
            path.pop()
        match = _LINE.fullmatch(content)
        operator, known = (content, []) if match is None else (match[1], match[2].split("; "))
        node = _Node(_wrapped(operator), [part for text in known for part in _wrapped(text)], depth)
        (path[-1].inputs if path else roots).append(node)
        path.append(node)
    return roots


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(_cell.printable(text), _LETTERS, subsequent_indent="  ") or [""]


def _place(node: _Node, left: float) -> float:
    """Places a node in the middle above its inputs, all right of a line; returns where they end."""
    right = left
    for number, child in enumerate(node.inputs):
        right = _place(child, right + (_COLUMN_GAP if number else 0))
    node.left = left
    if node.inputs:
        node.left = (node.inputs[0].middle + node.inputs[-1].middle - node.width) / 2
        if node.left < left:
            # It is wider than they are.
            right += left - node.left
            _move(node, left - node.left)
    return max(right, node.left + node.width)


def _move(node: _Node, by: float) -> None:
    node.left += by
    for child in node.inputs:
        _move(child, by)


def _layers(nodes: list[_Node]) -> list[list[_Node]]:
    layers = []
    while nodes:
        layers.append(nodes)
        nodes = [child for node in nodes for child in node.inputs]
    return layers


def _arrow(child: _Node, node: _Node) -> str:
    """The way of the rows, from an operator up to the one that takes them."""
    start, end = child.top, node.top + node.height
    # Several arrows into one box end beside each other.
    number = next(number for number, other in enumerate(node.inputs, 1) if other is child)
    source, target = child.middle, node.left + node.width * number / (len(node.inputs) + 1)
    bend = (start + end) / 2
    return (
        f'<path d="M{source:.1f} {start:.1f} C{source:.1f} {bend:.1f} {target:.1f} {bend:.1f} {target:.1f} {end + 8:.1f}" '
        f'fill="none" stroke="currentColor" stroke-opacity="0.6"/>'
        f'<path d="M{target:.1f} {end + 1:.1f} l4 8 h-8 z" fill-opacity="0.6"/>'
    )


def _box(node: _Node) -> str:
    lines = []
    height = node.top + _PADDING
    for number, line in enumerate([*node.operator, *node.known]):
        height += _LINE_HEIGHT
        # The first word is what the operator does.
        style = ' fill-opacity="0.65"' if number >= len(node.operator) else ""
        text = _escaped(line)
        if number == 0:
            first, _, rest = line.partition(" ")
            text = f'<tspan font-weight="bold">{_escaped(first)}</tspan>{_escaped(" " + rest if rest else "")}'
        lines.append(f'<text x="{node.left + _PADDING:.1f}" y="{height - 4:.1f}" xml:space="preserve"{style}>{text}</text>')
    return (
        f'<g><rect x="{node.left:.1f}" y="{node.top:.1f}" width="{node.width:.1f}" height="{node.height:.1f}" rx="6" '
        f'fill-opacity="0.05" stroke="currentColor" stroke-opacity="0.5"/>{"".join(lines)}</g>'
    )


def _escaped(text: str) -> str:
    # XML has no control characters.
    return html.escape("".join(character for character in text if character.isprintable() or character == "\n"))
