"""Progress of a run on the terminal or in a notebook, by the package rich."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onbeat._run import Run

#: Workers are asked for it, so it is not done more often.
_EVERY_S = 0.25


def progress(run: Run) -> tuple[Callable[[], None], Callable[[], None]]:
    """Returns a function that shows how far the run is, and one that ends the display."""
    try:
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
    except ImportError:
        logging.getLogger("onbeat").warning("no progress is shown: the package rich is not installed (pip install rich)")
        return nothing, nothing
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[at]}"), TimeElapsedColumn())
    bar = Progress(*columns, transient=True)
    task = bar.add_task(run.name, total=None, at="")
    bar.start()
    next_s = 0.0

    def show() -> None:
        nonlocal next_s
        if time.monotonic() < next_s:
            return
        next_s = time.monotonic() + _EVERY_S
        status = run.status
        length_ns = status["length_ns"]
        at = f"{status['position_ns'] / 1e9:.1f} s" + ("" if length_ns is None else f" of {length_ns / 1e9:.1f} s")
        bar.update(task, completed=status["position_ns"], total=length_ns, at=at)

    return show, bar.stop


def nothing() -> None:
    """Shows nothing."""
