"""Pictures for notebooks."""

from __future__ import annotations

from html import escape
from typing import Any

_WIDTH, _HEIGHT, _GAP, _LINE = 150, 36, 40, 18


def graph(plan: dict[str, Any]) -> str:
    """Draws a plan: operators by their distance from the sources, edges between them, a colour per worker."""
    operators = [operator["name"] for operator in plan["operators"]]
    workers = {name: number for number, worker in enumerate(plan["workers"]) for name in worker["operators"]}
    kinds = {operator["name"]: operator.get("kind", "") for operator in plan["operators"]}
    edges = [(edge["from"].rpartition(".")[0], edge["to"].rpartition(".")[0]) for edge in plan["edges"]]
    column = dict.fromkeys(operators, 0)
    # As many rounds as there are operators: a cycle does not go on for ever.
    for _ in operators:
        for begin, end in edges:
            if begin in column and end in column and column[end] < column[begin] + 1 < len(operators):
                column[end] = column[begin] + 1
    rows: dict[int, int] = {}
    place = {}
    for name in operators:
        row = rows.setdefault(column[name], 0)
        rows[column[name]] += 1
        place[name] = (column[name] * (_WIDTH + _GAP) + 10, row * (_HEIGHT + _LINE) + 10)
    width = max((x for x, _ in place.values()), default=0) + _WIDTH + 10
    height = max((y for _, y in place.values()), default=0) + _HEIGHT + 10
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="12">'
        '<defs><marker id="onbeat-arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L8 4L0 8z" fill="#666"/></marker></defs>'
    ]
    for begin, end in edges:
        if begin in place and end in place:
            (x1, y1), (x2, y2) = place[begin], place[end]
            x1, y1, y2, middle = x1 + _WIDTH, y1 + _HEIGHT // 2, y2 + _HEIGHT // 2, (x1 + _WIDTH + x2) // 2
            parts.append(
                f'<path d="M{x1} {y1}C{middle} {y1} {middle} {y2} {x2} {y2}" fill="none" stroke="#666" '
                'marker-end="url(#onbeat-arrow)"/>'
            )
    for name, (x, y) in place.items():
        hue = workers.get(name, 0) * 137 % 360
        parts.append(
            f'<rect x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" rx="5" fill="hsl({hue},60%,92%)" stroke="hsl({hue},40%,50%)"/>'
            f'<text x="{x + 8}" y="{y + 15}" font-weight="bold">{escape(name[:20])}</text>'
            f'<text x="{x + 8}" y="{y + 29}" fill="#666">{escape(str(kinds[name])[:22])}</text>'
        )
    return "".join(parts) + "</svg>"
