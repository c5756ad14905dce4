"""Records of runs as objects."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from onbeat import _onbeat


class Row(Mapping[str, Any]):
    """A part of a record: its keys are attributes. Times in nanoseconds have a twin in milliseconds, ``p99_ms`` for ``p99_ns``."""

    __slots__ = ("_data",)

    def __init__(self, data: dict[str, Any]) -> None:
        self._data = data

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        found = self._find(name)
        if found is _NOTHING:
            raise AttributeError(f"there is no {name!r}: there are {', '.join(self._data)}")
        return found

    def _find(self, name: str) -> Any:
        if name in self._data:
            return _wrapped(self._data[name])
        if name.endswith("_ms") and f"{name[:-3]}_ns" in self._data:
            value = self._data[f"{name[:-3]}_ns"]
            return None if value is None else value / 1e6
        # The figures of a path's latency and of an operator's step are its own as well.
        for inner in ("latency", "step"):
            if isinstance(self._data.get(inner), dict):
                found = Row(self._data[inner])._find(name)
                if found is not _NOTHING:
                    return found
        return _NOTHING

    def __getitem__(self, key: str) -> Any:
        return _wrapped(self._data[key])

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._data]

    def __repr__(self) -> str:
        shown = ", ".join(f"{key}={value!r}" for key, value in self._data.items() if not isinstance(value, (dict, list)))
        return f"Row({shown})"


_NOTHING: Any = object()


def _wrapped(value: Any) -> Any:
    if isinstance(value, dict):
        return Row(value)
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return _rows(value)
    return value


def _rows(values: list[dict[str, Any]]) -> list[Row]:
    return [Row(value) for value in values]


class Rows(Mapping[str, Row]):
    """Parts of a record by name. A number is an index."""

    def __init__(self, rows: list[dict[str, Any]], name: Any) -> None:
        self._rows = {name(row): Row(row) for row in rows}

    def __getitem__(self, key: Any) -> Row:
        if isinstance(key, int):
            return list(self._rows.values())[key]
        found = self._rows.get(key.replace(" → ", " -> "))
        if found is None:
            raise KeyError(f"there is no {key!r}: there are {', '.join(self._rows) or 'none'}")
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"Rows({', '.join(self._rows)})"


class Record:
    """All measurements of a run. Keys of the JSON are attributes."""

    def __init__(self, data: dict[str, Any], text: str | None = None) -> None:
        self.data = data
        self._text = text

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Record:
        """Reads a record file."""
        text = Path(path).read_text(encoding="utf-8")
        return cls(json.loads(text), text)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self.data:
            raise AttributeError(f"a record has no {name!r}: it has {', '.join(self.data)}")
        return _wrapped(self.data[name])

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.data]

    @property
    def operators(self) -> Rows:
        """Operators by name: steps, times, share of the core, losses."""
        return Rows(self.data["operators"], lambda row: row["name"])

    @property
    def edges(self) -> Rows:
        """Edges by "a.out -> b.in": messages sent, received, dropped; greatest depth."""
        return Rows(self.data["edges"], lambda row: f"{row['from']} -> {row['to']}")

    @property
    def paths(self) -> Rows:
        """Paths by "source -> sink": latency (``median_ms``, ``p99_ms``, ``max_ms``) and misses."""
        return Rows(self.data["paths"], lambda row: f"{row['from']} -> {row['to']}")

    @property
    def threads(self) -> Rows:
        """Threads by name."""
        return Rows(self.data["threads"], lambda row: row["name"])

    @property
    def causes(self) -> list[Row]:
        """Causes of lateness, the most expensive one first."""
        return _rows(self.data["causes"])

    @property
    def misses(self) -> list[Row]:
        """Late messages; ``sentence`` says why, if it was found out."""
        return [Row({**miss, "sentence": (miss.get("verdict") or {}).get("sentence")}) for miss in self.data["misses"]]

    @property
    def duration_s(self) -> float:
        """Duration in seconds."""
        return float(self.data["result"]["duration_ns"]) / 1e9

    def to_json(self) -> str:
        """Returns the record as its file has it."""
        if self._text is None:
            self._text = json.dumps(self.data, indent=2)
        return self._text

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the record to a file, for ``onbeat report`` and for ``Record.read``."""
        Path(path).write_text(self.to_json(), encoding="utf-8")

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """Returns the report: one page of HTML with plots. Also writes it to a file."""
        page = _onbeat.report(self.to_json(), self.name)
        if path is not None:
            Path(path).write_text(page, encoding="utf-8")
        return page

    def to_pandas(self, table: str = "operators") -> Any:
        """Returns a table ("operators", "edges", "paths", "threads", "causes", "misses") as a pandas DataFrame."""
        try:
            import pandas
        except ImportError:
            raise ImportError("to_pandas needs pandas: pip install pandas") from None
        tables = ("operators", "edges", "paths", "threads", "causes", "misses")
        if table not in tables:
            raise ValueError(f"there is no table {table!r}: there are {', '.join(tables)}")
        frame = pandas.json_normalize(self.data[table])
        index = {"operators": "name", "threads": "name"}.get(table)
        return frame.set_index(index) if index and len(frame) else frame

    def plot(self, axes: Any = None) -> Any:
        """Draws the latencies of all paths over time, with matplotlib. Returns the axes."""
        from onbeat._plots import latencies

        return latencies(self, axes)

    def __str__(self) -> str:
        result = self.data["result"]
        lines = [f"{self.data['name']}: {result['outcome']} after {self.duration_s:.3f} s: {result['reason']}"]
        for name, path in self.paths.items():
            figures = path.latency
            if figures["count"]:
                late = f", {path.misses} late" if path.max_latency_ns is not None else ""
                lines.append(
                    f"  {name}: median {path.median_ms:.3f} ms, p99 {path.p99_ms:.3f} ms, max {path.max_ms:.3f} ms{late}"
                )
        lines += [f"  {miss.sentence}" for miss in self.misses[:3] if miss.sentence]
        lines += [f"  note: {note}" for note in self.data["notes"]]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<Record {self}>" if "\n" not in str(self) else f"<Record\n{self}>"

    def _repr_html_(self) -> str:
        from html import escape

        # The page has styles and scripts of its own.
        return f'<iframe srcdoc="{escape(self.to_html(), quote=True)}" width="100%" height="700" frameborder="0"></iframe>'
