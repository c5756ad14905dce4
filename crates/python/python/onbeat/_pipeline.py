"""Pipelines: operators and edges, as Python or a file states them."""

from __future__ import annotations

import copy
import inspect
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Union

from onbeat import _onbeat
from onbeat._errors import NotObtained, PipelineError
from onbeat._operator import Operator
from onbeat._record import Record
from onbeat._run import Run

Ref = Union["Node", "Port", str]


class Port:
    """A port of a node, for ``connect``."""

    def __init__(self, node: Node, name: str) -> None:
        self.node, self.name = node, name

    def __str__(self) -> str:
        return f"{self.node.name}.{self.name}"

    def __repr__(self) -> str:
        return f"<port {self}>"


class Node:
    """An operator in a pipeline. ``node["left"]`` is its port of that name."""

    def __init__(self, pipeline: Pipeline, table: dict[str, Any], operator: Operator | None) -> None:
        self._pipeline, self._table = pipeline, table
        #: The instance, if the operator is written in Python.
        self.operator = operator

    @property
    def name(self) -> str:
        """Its name in the pipeline."""
        return str(self._table["name"])

    @property
    def kind(self) -> str:
        """Its kind."""
        return type(self.operator).__name__ if self.operator is not None else str(self._table["kind"])

    def __getitem__(self, port: str) -> Port:
        return Port(self, port)

    def set(self, **values: Any) -> Node:
        """Sets parameters, or keys that every operator has: ``deadline``, ``budget``, ``on_miss``, ``when``, ``on_error``, ..."""
        self._table.update(values)
        return self

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<{self.kind} {self.name}>"


class Plan:
    """Which worker steps which operator, on which core. ``data`` has everything, as JSON has it."""

    def __init__(self, data: dict[str, Any], dot: str) -> None:
        self.data = data
        #: The plan as a graph for Graphviz.
        self.dot = dot

    @property
    def workers(self) -> list[dict[str, Any]]:
        """The workers: name, core, operators."""
        return list(self.data["workers"])

    @property
    def notes(self) -> list[str]:
        """Notes of the plan."""
        return list(self.data["notes"])

    def __str__(self) -> str:
        lines = [f"{self.data['name']}: {self.data['options']['scheduler']}"]
        for worker in self.workers:
            core = "" if worker.get("core") is None else f" on core {worker['core']}"
            lines.append(f"  {worker['name']}{core}: {' → '.join(worker['operators'])}")
        return "\n".join(lines + [f"  note: {note}" for note in self.notes])

    def _repr_html_(self) -> str:
        from onbeat._html import graph

        return graph(self.data)


class Pipeline:
    """A pipeline.

    ``options`` are the keys at the top of a pipeline file: ``scheduler``, ``cores``, ``policy``, ``strict``, ``duration``,
    ``pace``, ``output``, ... They can be changed later in ``pipeline.options``.
    """

    def __init__(self, name: str = "pipeline", **options: Any) -> None:
        self.options: dict[str, Any] = {"name": name, **options}
        self._operators: list[Node] = []
        self._edges: list[dict[str, Any]] = []
        self._paths: list[dict[str, Any]] = []
        self._pools: list[dict[str, Any]] = []
        self._subgraphs: list[dict[str, Any]] = []
        self._folder = ""
        #: Text of the file as long as nothing was changed, so that errors name its lines.
        self._source: tuple[str, str, Any] | None = None

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.options["name"])

    @property
    def nodes(self) -> dict[str, Node]:
        """Its operators by name."""
        return {node.name: node for node in self._operators}

    def __getitem__(self, name: str) -> Node:
        try:
            return self.nodes[name]
        except KeyError:
            raise KeyError(f"there is no operator {name!r}: there are {', '.join(self.nodes) or 'none'}") from None

    def add(self, kind: str | Operator | Any, name: str | None = None, **values: Any) -> Node:
        """Adds an operator: a built-in kind by its name, or an operator written in Python.

        ``values`` are its parameters, and the keys that every operator has: ``deadline``, ``budget``, ``on_miss``, ``cost``,
        ``when``, ``on_error``, ``restart``.
        """
        if isinstance(kind, type) and issubclass(kind, Operator):
            own = {key: values.pop(key) for key in list(values) if key in kind._parameters}
            kind = kind(**own)
        if isinstance(kind, Operator):
            if any(node.operator is kind for node in self._operators):
                raise PipelineError(f"this {type(kind).__name__} is in the pipeline already: make another one")
            table = {"name": name or self._free(type(kind).__name__), "kind": "python", **values}
            node = Node(self, table, kind)
        elif isinstance(kind, str):
            node = Node(self, {"name": name or self._free(kind.replace(".", "_")), "kind": kind, **values}, None)
        else:
            shown = type(kind).__name__
            raise TypeError(f"{shown} is not an operator: give the name of a kind, or an instance of onbeat.Operator")
        self._operators.append(node)
        return node

    def _free(self, name: str) -> str:
        taken, number = self.nodes, 1
        free = name
        while free in taken:
            number += 1
            free = f"{name}{number}"
        return free

    def connect(
        self,
        first: Ref,
        *others: Ref,
        capacity: int | None = None,
        when_full: str | None = None,
        quantum: int | str | None = None,
        initial: Any = None,
    ) -> Ref:
        """Connects operators in a row, and returns the last one. Each is a node, a port (``node["out"]``), or "node.port"."""
        if not others:
            raise TypeError("connect needs two operators or more")
        options = {"capacity": capacity, "when_full": when_full, "quantum": quantum, "initial": initial}
        set_options = {key: value for key, value in options.items() if value is not None}
        for begin, end in zip((first, *others), others):
            for ref in (begin, end):
                node = ref.node if isinstance(ref, Port) else ref
                if isinstance(node, Node) and node._pipeline is not self:
                    raise PipelineError(f"operator {node.name!r} is of another pipeline")
            self._edges.append({"from": str(begin), "to": str(end), **set_options})
        return others[-1]

    def path(self, begin: Ref, end: Ref, **limits: Any) -> None:
        """Limits a path from a source to a sink: ``max_latency``, ``max_in_flight``, ``on_miss``."""
        self._paths.append({"from": str(begin), "to": str(end), **limits})

    def pool(self, name: str, operators: Iterable[Node | str] = (), **options: Any) -> None:
        """Adds a pool of workers for the scheduler ``custom``: ``cores``, ``workers``, ``policy``, ``idle``."""
        self._pools.append({"name": name, "operators": [str(operator) for operator in operators], **options})

    # Texts.

    def _table(self, instances: list[Operator] | None) -> dict[str, Any]:
        """The file that says the same. With ``instances``, operators in Python are named by their number in it."""
        table: dict[str, Any] = {key: value for key, value in self.options.items() if value is not None}
        operators = []
        for node in self._operators:
            entry = dict(node._table)
            if node.operator is not None:
                if instances is not None:
                    entry["class"] = f"onbeat:instance:{len(instances)}"
                    instances.append(node.operator)
                else:
                    entry.update(_described(node))
            operators.append(entry)
        lists = {
            "operator": operators,
            "edge": self._edges,
            "path": self._paths,
            "pool": self._pools,
            "subgraph": self._subgraphs,
        }
        table.update({key: value for key, value in lists.items() if value})
        return table

    def to_toml(self) -> str:
        """Returns the pipeline as a file. Operators in Python need a file of their own."""
        return _onbeat.format_toml(self._table(None))

    @classmethod
    def from_toml(cls, path: str | os.PathLike[str], set: Mapping[str, Any] | None = None) -> Pipeline:  # noqa: A002
        """Reads a pipeline file, and applies settings such as ``{"iq.path": "mine.sigmf-meta"}``."""
        pipeline = load(path)
        for key, value in (set or {}).items():
            operator, dot, parameter = key.partition(".")
            if dot and operator != "defaults":
                pipeline[operator].set(**{parameter: value})
            elif dot:
                pipeline.options.setdefault("defaults", {})[parameter] = value
            else:
                pipeline.options[key] = value
        return pipeline

    def _arguments(self, options: Mapping[str, Any]) -> tuple[str, str, str, list[Any]]:
        instances: list[Any] = []
        table = self._table(instances)
        table.update(options)
        if self._source is not None and self._source[2] == table:
            text, file, _ = self._source
        else:
            text, file = _onbeat.format_toml(table), ""
        return text, file or f"{self.name}.toml", self._folder, instances

    def _checked(self, call: Any, options: Mapping[str, Any]) -> Any:
        arguments = self._arguments(options)
        is_file = self._source is not None and arguments[1] == self._source[1]
        try:
            return call(*arguments)
        except _onbeat.Fault as fault:
            message, file, line, column, hint = fault.args
            kind = NotObtained if message.startswith("strict: ") else PipelineError
            if not is_file:
                file = line = column = None
            raise kind(message, file, line, column, hint) from None

    # Runs.

    def check(self) -> None:
        """Checks the pipeline without running it.

        Raises PipelineError, with the place and a hint.
        """
        self._checked(_onbeat.plan, {})

    def plan(self, **options: Any) -> Plan:
        """Returns which worker will step which operator."""
        data, dot = self._checked(_onbeat.plan, options)
        return Plan(json.loads(data), dot)

    def start(self, **options: Any) -> Run:
        """Starts the pipeline, and returns while it runs. ``options`` are those of ``Pipeline``."""
        inner, instances = self._checked(_onbeat.start, options)
        return Run(inner, instances, self.name)

    def run(self, *, progress: bool = False, **options: Any) -> Record:
        """Runs the pipeline to its end, and returns the record. Ctrl-C ends it cleanly, then raises KeyboardInterrupt.

        ``progress`` shows how far it is, if the package rich is there.
        """
        with self.start(**options) as run:
            return run.wait(progress=progress)

    def __repr__(self) -> str:
        return f"<Pipeline {self.name}: {len(self._operators)} operators, {len(self._edges)} edges>"

    def _repr_html_(self) -> str:
        try:
            return self.plan()._repr_html_()
        except PipelineError as error:
            from html import escape

            return f"<pre>{escape(repr(self))}\n{escape(str(error))}</pre>"

    def __reduce__(self) -> Any:
        raise TypeError("a pipeline cannot be pickled: send the text of to_toml() instead")


def _described(node: Node) -> dict[str, Any]:
    """Where the class of a Python operator is, and its parameters."""
    assert node.operator is not None
    kind = type(node.operator)
    made_of = kind._function or kind
    try:
        file = inspect.getsourcefile(made_of)
    except TypeError:
        file = None
    if file is None or not os.path.exists(file) or "<locals>" in kind.__qualname__:
        raise PipelineError(
            f"operator {node.name!r}: its class {kind.__qualname__} is in no file",
            hint="move it to the top level of a .py file: the pipeline file names that file",
        )
    return {"file": file, "class": kind.__qualname__, **node.operator._values()}


def load(path: str | os.PathLike[str]) -> Pipeline:
    """Reads a pipeline file. The pipeline can be changed and run."""
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8")
        table = _onbeat.parse_toml(text)
    except OSError as error:
        raise PipelineError(f"cannot be read: {error.strerror}", str(file)) from None
    except UnicodeDecodeError:
        raise PipelineError("is not UTF-8 text: is it a pipeline?", str(file)) from None
    except ValueError as error:
        raise PipelineError(str(error), str(file)) from None
    pipeline = Pipeline(file.stem)
    lists = {name: table.pop(name, []) for name in ("operator", "edge", "path", "pool", "subgraph")}
    for name, entries in lists.items():
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise PipelineError(f"`{name}` is not a list of tables: write [[{name}]]", str(file))
    pipeline.options = {"name": file.stem, **table}
    for entry in lists["operator"]:
        pipeline._operators.append(Node(pipeline, {"name": "", **entry}, None))
    pipeline._edges, pipeline._paths = lists["edge"], lists["path"]
    pipeline._pools, pipeline._subgraphs = lists["pool"], lists["subgraph"]
    pipeline._folder = str(file.parent)
    pipeline._source = (text, str(file), copy.deepcopy(pipeline._table([])))
    return pipeline
