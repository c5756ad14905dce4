"""Loads operators for ``kind = "python"``."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
from pathlib import Path
from typing import Any

from onbeat._operator import Operator

#: Modules of files, by path and time of the last change.
_files: dict[tuple[str, int], Any] = {}


def make(file: str | None, name: str, values: dict[str, Any]) -> Operator:
    """Makes an operator of the class in a file, or of ``module:Class``."""
    found = _of_file(Path(file), name) if file is not None else _of_module(name)
    if not (isinstance(found, type) and issubclass(found, Operator)):
        if callable(found):
            raise TypeError("it is not an operator: derive it from onbeat.Operator, or decorate the function with @onbeat.operator")
        raise TypeError(f"it is not a class, but {type(found).__name__}")
    return found(**values)


def _of_file(path: Path, name: str) -> Any:
    try:
        key = (str(path.resolve()), path.stat().st_mtime_ns)
    except OSError as error:
        raise ValueError(f"`file`: {path}: {error.strerror}") from None
    module = _files.get(key)
    if module is None:
        # The name is unique, and the folder of the file is where it finds its neighbours.
        unique = f"_onbeat_{path.stem}_{hashlib.sha1(repr(key).encode()).hexdigest()[:12]}"
        spec = importlib.util.spec_from_file_location(unique, path)
        if spec is None or spec.loader is None:
            raise ValueError(f"`file`: {path} is not a Python file: its name ends with .py")
        module = importlib.util.module_from_spec(spec)
        sys.modules[unique] = module
        folder = str(path.resolve().parent)
        if folder not in sys.path:
            sys.path.append(folder)
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[unique]
            raise
        _files[key] = module
    return _inside(module, name, str(path))


def _of_module(name: str) -> Any:
    module, colon, inner = name.partition(":")
    if not colon:
        raise ValueError(f"`class` is {name!r}: without `file`, it is module:Class")
    return _inside(importlib.import_module(module), inner, f"module {module}")


def _inside(module: Any, name: str, where: str) -> Any:
    found = module
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            classes = [key for key, value in vars(module).items() if isinstance(value, type) and issubclass(value, Operator)]
            classes = [key for key in classes if key != "Operator"]
            help_text = f": it has {', '.join(classes)}" if classes else ""
            raise ValueError(f"there is no `{name}` in {where}{help_text}") from None
    return found
