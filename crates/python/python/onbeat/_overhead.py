"""The cases of ``onbeat bench overhead`` with operators in Python.

``onbeat bench overhead --python PATH`` starts ``python -m onbeat._overhead`` once and writes a line of JSON per run to it:

    {"case": "tx_rx", "scheduler": "event", "workers": 2, "iterations": 10000, "warm_up": 100}

The answer is a line of JSON on stdout, in nanoseconds: ``wall_ns``, the time to build, plan and run the pipeline; ``begin_ns``,
when the first operator at the end of the graph had counted ``warm_up`` iterations, and ``end_ns``, when the last one had counted
all, both on CLOCK_MONOTONIC; or ``error``, in words. The scheduler ``bare`` calls the same steps in a loop, without an engine.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import deque
from typing import Any

import onbeat


class Counted:
    """Counts iterations, and reads the clock at two of them."""

    def __init__(self, iterations: int, warm_up: int) -> None:
        self.iterations, self.warm_up = iterations, max(warm_up, 1)
        self.count = self.begin_ns = self.end_ns = 0

    def count_one(self) -> None:
        self.count += 1
        if self.count == self.warm_up:
            self.begin_ns = time.monotonic_ns()
        if self.count == self.iterations:
            self.end_ns = time.monotonic_ns()


class Alone(onbeat.Operator):
    def __init__(self, counted: Counted) -> None:
        super().__init__()
        self.counted = counted

    def step(self, cx: Any) -> onbeat.Step:
        self.counted.count_one()
        return onbeat.DONE if self.counted.end_ns else onbeat.AGAIN


class Tx(onbeat.Operator):
    out: onbeat.Output[object]

    def __init__(self, iterations: int) -> None:
        super().__init__()
        self.iterations, self.next = iterations, 0

    def step(self, cx: Any, out: Any) -> onbeat.Step:
        self.next += 1
        out.push(self.next)
        return onbeat.DONE if self.next == self.iterations else onbeat.AGAIN


class Pass(onbeat.Operator):
    x: onbeat.Input[object]
    out: onbeat.Output[object]

    def step(self, cx: Any, x: Any, out: Any) -> None:
        out.push(x + 1)


class Rx(onbeat.Operator):
    x: onbeat.Input[object]

    def __init__(self, counted: Counted) -> None:
        super().__init__()
        self.counted, self.sum = counted, 0

    def step(self, cx: Any, x: Any) -> None:
        self.sum += x
        self.counted.count_one()


#: Operators between first and last, and the number of last ones.
CHAINS = {"tx_rx": (0, 1), "chain_4": (2, 1), "fan_out_4": (0, 4)}


def pipeline(case: str, ends: list[Counted]) -> onbeat.Pipeline:
    p = onbeat.Pipeline("overhead")
    if case == "two_operators":
        for end in ends:
            p.add(Alone(end))
        return p
    between, _ = CHAINS[case]
    last = p.add(Tx(ends[0].iterations), "tx")
    for number in range(between):
        following = p.add(Pass(), f"pass{number}")
        p.connect(last, following)
        last = following
    for number, end in enumerate(ends):
        p.connect(last, p.add(Rx(end), f"rx{number}"))
    return p


class Slot(deque[Any]):
    """An output and the input behind it, without an engine."""

    push = deque.append


def bare(case: str, ends: list[Counted]) -> None:
    iterations = ends[0].iterations
    if case == "two_operators":
        first, second = (Alone(end) for end in ends)
        for _ in range(iterations):
            first.step(None)
            second.step(None)
        return
    between, _ = CHAINS[case]
    tx, passes, receivers = Tx(iterations), [Pass() for _ in range(between)], [Rx(end) for end in ends]
    slot = Slot()
    for _ in range(iterations):
        tx.step(None, slot)
        for one in passes:
            one.step(None, slot.popleft(), slot)
        value = slot.popleft()
        for rx in receivers:
            rx.step(None, value)


def measure(case: str, scheduler: str, workers: int, iterations: int, warm_up: int) -> dict[str, Any]:
    count = 2 if case == "two_operators" else CHAINS[case][1]
    before_ns = time.monotonic_ns()
    ends = [Counted(iterations, warm_up) for _ in range(count)]
    if scheduler == "bare":
        bare(case, ends)
    else:
        p = pipeline(case, ends)
        p.options["scheduler"] = scheduler
        if scheduler != "greedy":
            p.options["workers"] = workers
        p.run()
    wall_ns = time.monotonic_ns() - before_ns
    if any(end.count != iterations for end in ends):
        return {"error": f"of {iterations} iterations, these were made: {[end.count for end in ends]}"}
    return {
        "wall_ns": wall_ns,
        "begin_ns": min(end.begin_ns for end in ends),
        "end_ns": max(end.end_ns for end in ends),
    }


def serve() -> None:
    """Answers each line of stdin on the original stdout; whatever else is printed goes to stderr."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    print(json.dumps({"version": onbeat.__version__, "python": sys.version.split()[0]}), file=answers, flush=True)
    for line in sys.stdin:
        wanted = json.loads(line)
        try:
            answer = measure(**wanted)
        except Exception as error:  # noqa: BLE001: the bench shows any error
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    serve()
