"""Measures what `python.json` has: chunks without copies, two NumPy operators on two cores, a Rust branch beside busy Python.

    python bench-results/python.py [--rounds N] > bench-results/python.json

It needs the package onbeat, two cores, and the right to use SCHED_FIFO.
"""

import argparse
import json
import os
import platform
import statistics
import time

import numpy as np
import onbeat as ob

#: Samples of a chunk of 10 MB.
LARGE = 2_500_000


class Nothing(ob.Operator):
    """Does nothing with a chunk, and reads the clock at two of them."""

    x: ob.InOut[ob.Real]
    first, last = 0, 0

    def __init__(self, first=0, last=0):
        super().__init__()
        self.first, self.last, self.count = first, last, 0

    def step(self, cx, x):
        self.count += 1
        if self.count == self.first:
            self.begin = time.perf_counter()
        if self.count == self.last:
            self.end = time.perf_counter()


class Touch(ob.Operator):
    """Looks where a chunk is."""

    x: ob.InOut[ob.Real]

    def __init__(self):
        super().__init__()
        self.addresses = []

    def step(self, cx, x):
        self.addresses.append(x.ctypes.data)


def large_chunks(chunks=20_000):
    """Time that a Python operator adds to chunks of 10 MB from a Rust source to a Rust sink, and the number of copies."""

    def run(count, *operators):
        p = ob.Pipeline("large", explain="off", defaults={"quantum": "10 MB", "capacity": 2})
        source = p.add("null.source", "source", size=LARGE, count=count)
        p.connect(source, *map(p.add, operators), p.add("null.sink", "end"))
        return p.run()

    def us(*more):
        last = Nothing(chunks // 10, chunks)
        run(chunks, *more, last)
        return (last.end - last.begin) / (chunks - chunks // 10) * 1e6

    first, second = Touch(), Touch()
    record = run(200, first, second)
    assert first.addresses == second.addresses, "both operators see the same chunks at the same place"
    return {
        "us_per_chunk_and_operator": us(Nothing()) - us(),
        "copies": sum(store.copies for store in record.stores),
        "different_addresses": len(set(first.addresses)),
    }


class Sines(ob.Operator):
    """Computes outside the interpreter's lock."""

    x: ob.InOut[ob.Real]

    def step(self, cx, x):
        for _ in range(8):
            np.sin(x, out=x)


def two_workers(chunks=60):
    """Rate of two heavy NumPy operators on two pinned workers, relative to one worker."""

    def seconds(**how):
        p = ob.Pipeline("sines", explain="off", defaults={"quantum": "1 MiB"}, **how)
        p.connect(p.add("null.source", size=1 << 18, count=chunks), p.add(Sines()), p.add(Sines()), p.add("null.sink"))
        begin = time.perf_counter()
        p.run()
        return time.perf_counter() - begin

    one = seconds(scheduler="greedy", cores=[0])
    return {"times_one_worker": one / seconds(scheduler="pinned", cores=[0, 1])}


class Hog(ob.Operator):
    """Has the interpreter's lock nearly all of the time."""

    x: ob.Input[ob.Real]

    def step(self, cx, x):
        end = time.perf_counter() + 0.004
        while time.perf_counter() < end:
            pass


def beside_a_hog(seconds=10):
    """A Rust branch of 1 kHz under SCHED_FIFO, alone, then with a Python branch of 200 Hz beside Python code that has the lock."""
    alone = ob.Pipeline("alone", duration=f"{seconds} s", cores=[0], policy="f:80")
    rust = [alone.add("null.source", "rust", rate=48_000, size=48, pace="real"), alone.add("saxpy", a=2.0, b=0.0), alone.add("null.sink", "end")]
    alone.connect(*rust)
    alone.path("rust", "end", max_latency="1 ms")
    alone_path = alone.run().paths[0]
    p = ob.Pipeline("hog", scheduler="custom", duration=f"{seconds} s")

    def source(name, rate):
        return p.add("null.source", name, rate=rate * 48, size=48, pace="real")

    rust = [source("rust", 1000), p.add("saxpy", "scale", a=2.0, b=0.0), p.add("null.sink", "rust_end")]
    python = [source("python", 200), p.add(Nothing(), "light"), p.add("null.sink", "python_end")]
    hog = [source("ticks", 240), p.add(Hog(), "hog")]
    for branch in (rust, python, hog):
        p.connect(*branch)
    p.path("rust", "rust_end", max_latency="1 ms")
    p.path("python", "python_end", max_latency="1 ms")
    p.pool("radio", rust, cores=[0], policy="f:80")
    p.pool("script", python, cores=[0])
    p.pool("busy", hog, cores=[1])
    record = p.run()
    rust_path, python_path = record.paths["rust -> rust_end"], record.paths["python -> python_end"]
    misses = [miss.verdict for miss in record.misses if miss.name == "python → python_end"]
    blamed = [verdict for verdict in misses if verdict.parts and verdict.parts[0]["class"] == "gil_wait"]
    rust_causes = {}
    for miss in record.misses:
        if miss.name == "rust → rust_end":
            cause = miss.verdict.parts[0]["class"] if miss.verdict.parts else "none"
            rust_causes[cause] = rust_causes.get(cause, 0) + 1
    return {
        "rust_on_time_alone_percent": 100 * (1 - alone_path.misses / alone_path.count),
        "rust_frames": rust_path.count,
        "rust_on_time_percent": 100 * (1 - rust_path.misses / rust_path.count),
        "rust_p99_9_us": rust_path.p99_9_ns / 1e3,
        "rust_causes": rust_causes,
        "python_frames": python_path.count,
        "python_misses": python_path.misses,
        "python_misses_explained": len(misses),
        "python_misses_by_the_lock_percent": 100 * len(blamed) / len(misses),
    }


def summary(values):
    return {"median": statistics.median(values), "all": values} if isinstance(values[0], (int, float)) else {"all": values}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    wanted = parser.parse_args()
    parts = [large_chunks, two_workers, beside_a_hog]
    taken = {part.__name__: [part() for _ in range(wanted.rounds)] for part in parts}
    figures = {
        name: {key: summary([one[key] for one in rounds]) for key in rounds[0]}
        for name, rounds in taken.items()
    }
    machine = {"python": platform.python_version(), "numpy": np.__version__, "cores": os.cpu_count(), "kernel": platform.release()}
    print(json.dumps({"bench": "python", "onbeat": ob.__version__, "machine": machine, "figures": figures}, indent=2))


if __name__ == "__main__":
    main()
