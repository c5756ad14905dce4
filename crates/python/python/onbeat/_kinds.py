"""The built-in kinds of operators."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from onbeat import _onbeat


@dataclass(frozen=True)
class Kind:
    """A kind of operator: its name in ``Pipeline.add``, and what it takes."""

    name: str
    #: One line.
    summary: str
    #: Inputs and outputs: name, message, whether it is required.
    inputs: tuple[dict[str, Any], ...]
    outputs: tuple[dict[str, Any], ...]
    #: JSON Schema of the parameters.
    schema: dict[str, Any]
    #: Parameters that can change during a run.
    settable: tuple[str, ...]


@lru_cache(maxsize=1)
def kinds() -> dict[str, Kind]:
    """Returns all kinds of operators by name."""
    return {
        kind["name"]: Kind(
            kind["name"],
            kind["summary"],
            tuple(kind["inputs"]),
            tuple(kind["outputs"]),
            kind["schema"],
            tuple(kind["settable"]),
        )
        for kind in json.loads(_onbeat.kinds())
    }
