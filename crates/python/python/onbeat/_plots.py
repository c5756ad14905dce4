"""Plots, where matplotlib is there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onbeat._record import Record


def latencies(record: Record, axes: Any = None) -> Any:
    """Draws mean and largest latency of all paths over time."""
    try:
        from matplotlib import pyplot
    except ImportError:
        raise ImportError("plot needs matplotlib: pip install matplotlib") from None
    if axes is None:
        _, axes = pyplot.subplots()
    for name, path in record.paths.items():
        course = path.course
        if course is None:
            continue
        times = [slot * course["slot_ns"] / 1e9 for slot in range(len(course["count"]))]
        points = [row for row in zip(times, course["count"], course["mean_ns"], course["max_ns"]) if row[1]]
        if not points:
            continue
        line = axes.plot([row[0] for row in points], [row[2] / 1e6 for row in points], label=name)[0]
        axes.plot([row[0] for row in points], [row[3] / 1e6 for row in points], ":", color=line.get_color(), label=f"{name}, max")
        if path.max_latency_ns is not None:
            axes.axhline(path.max_latency_ns / 1e6, color=line.get_color(), linewidth=0.5)
    axes.set_xlabel("time since the start (s)")
    axes.set_ylabel("latency (ms)")
    axes.set_title(record.name)
    axes.legend()
    return axes
