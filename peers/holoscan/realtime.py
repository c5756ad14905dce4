"""The passes of `onbeat bench realtime` in Holoscan, in Python.

Directly:    python3 realtime.py --policy fifo --duration 10
By onbeat:   onbeat bench realtime --peer holoscan
             It starts `realtime.py --serve` once and writes a line of JSON per pass to it; the answer is one on stdout.

An answer has, in nanoseconds on CLOCK_MONOTONIC, `starts_ns` and `ends_ns` of every frame, or "error", in words.
"""

import argparse
import json
import math
import os
import resource
import sys
import time

STACK_BYTES = 32 << 20
MARK = "ONBEAT_PEER_READY"


def prepare():
    """Restarts this process with a larger stack and the CUDA libraries in the loader's path, as Holoscan requires."""
    if os.environ.get(MARK):
        return
    os.environ[MARK] = "1"
    libraries = [
        os.path.join(folder, "nvidia", name, "lib")
        for folder in sys.path
        for name in ("cuda_runtime", "nvtx")
        if os.path.isdir(os.path.join(folder, "nvidia", name, "lib"))
    ]
    present = [part for part in os.environ.get("LD_LIBRARY_PATH", "").split(":") if part]
    os.environ["LD_LIBRARY_PATH"] = ":".join(libraries + present)
    os.environ.setdefault("HOLOSCAN_LOG_LEVEL", "OFF")
    soft, hard = resource.getrlimit(resource.RLIMIT_STACK)
    if soft != resource.RLIM_INFINITY and soft < STACK_BYTES:
        wanted = STACK_BYTES if hard == resource.RLIM_INFINITY else min(STACK_BYTES, hard)
        resource.setrlimit(resource.RLIMIT_STACK, (wanted, hard))
    # The interpreter as given, not the target of the link: Python finds a virtual environment by its path.
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


def build():
    """The function that makes a pass. Holoscan is imported here, after `prepare`."""
    from holoscan.conditions import PeriodicCondition, PeriodicConditionPolicy
    from holoscan.core import Application, Operator, OperatorSpec
    from holoscan.resources import SchedulingPolicy
    from holoscan.schedulers import EventBasedScheduler

    def work(intensity, numbers):
        for _ in range(intensity):
            for at, number in enumerate(numbers):
                numbers[at] = math.sin(number) + math.cos(number)

    class Frame(Operator):
        def __init__(self, fragment, *conditions, intensity, size, name):
            self.intensity, self.numbers = intensity, [float(at) for at in range(size)]
            self.starts, self.ends = [], []
            super().__init__(fragment, *conditions, name=name)

        def setup(self, spec: OperatorSpec):
            pass

        def compute(self, op_input, op_output, context):
            self.starts.append(time.monotonic_ns())
            work(self.intensity, self.numbers)
            self.ends.append(time.monotonic_ns())

    class Load(Operator):
        def __init__(self, fragment, *conditions, intensity, size, until, name):
            self.intensity, self.numbers, self.until = intensity, [float(at) for at in range(size)], until
            super().__init__(fragment, *conditions, name=name)

        def setup(self, spec: OperatorSpec):
            pass

        def compute(self, op_input, op_output, context):
            work(self.intensity, self.numbers)
            if time.monotonic_ns() > self.until[0]:
                self.fragment.stop_execution()

    class Realtime(Application):
        def __init__(self, wanted, until):
            super().__init__()
            self.wanted, self.until = wanted, until

        def compose(self):
            wanted = self.wanted
            period_ns = round(1e9 / wanted["fps"])
            policy = PeriodicConditionPolicy.MIN_TIME_BETWEEN_TICKS
            if hasattr(PeriodicConditionPolicy, "NO_CATCH_UP_MISSED_TICKS"):
                policy = PeriodicConditionPolicy.NO_CATCH_UP_MISSED_TICKS
            periodic = PeriodicCondition(self, recess_period=period_ns, policy=policy)
            self.frame = Frame(
                self,
                periodic,
                intensity=wanted["bm_load_intensity"],
                size=wanted["bm_workload_size"],
                name="frame",
            )
            self.add_operator(self.frame)
            for number in range(wanted["loads"]):
                load = Load(
                    self,
                    intensity=wanted["bg_load_intensity"],
                    size=wanted["bg_workload_size"],
                    until=self.until,
                    name=f"load{number}",
                )
                self.add_operator(load)
            if wanted["policy"]:
                policies = {"fifo": SchedulingPolicy.SCHED_FIFO, "rr": SchedulingPolicy.SCHED_RR}
                pool = self.make_thread_pool("frame", 1)
                pool.add_realtime(
                    self.frame,
                    policies[wanted["policy"]],
                    pin_operator=True,
                    pin_cores=[wanted["core"]],
                    sched_priority=wanted["priority"],
                )

    def measure(wanted):
        os.sched_setaffinity(0, {wanted["core"]})
        try:
            until = [time.monotonic_ns() + int(wanted["duration_s"] * 1e9)]
            application = Realtime(wanted, until)
            application.scheduler(
                EventBasedScheduler(application, worker_thread_number=wanted["workers"], name="event")
            )
            application.run()
        finally:
            os.sched_setaffinity(0, range(os.cpu_count()))
        starts, ends = application.frame.starts, application.frame.ends
        if len(starts) < 5:
            return {"error": f"it made {len(starts)} frames and said nothing"}
        return {"starts_ns": starts[: len(ends)], "ends_ns": ends}

    return measure


def serve(measure, version):
    """Answers each line of stdin on the original stdout; output of the libraries goes to stderr."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    print(json.dumps({"holoscan": version, "python": sys.version.split()[0]}), file=answers, flush=True)
    for line in sys.stdin:
        try:
            answer = measure(json.loads(line))
        except Exception as error:  # noqa: BLE001: onbeat shows any error
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policy", choices=["fifo", "rr"], help="without it all operators are equals")
    parser.add_argument("--priority", type=int, default=80)
    parser.add_argument("--fps", type=float, default=60)
    parser.add_argument("--duration", type=float, default=30, help="seconds")
    parser.add_argument("--loads", type=int, default=2)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--core", type=int, default=0)
    parser.add_argument("--serve", action="store_true", help="read what to measure from stdin, a line of JSON each")
    wanted = parser.parse_args()
    prepare()
    try:
        measure = build()
        from holoscan import __version__ as version
    except ImportError as error:
        print(f"Holoscan cannot be imported: {error}", file=sys.stderr)
        return 3
    if wanted.serve:
        serve(measure, version)
        return 0
    work = {"bg_load_intensity": 1000, "bg_workload_size": 100, "bm_load_intensity": 100, "bm_workload_size": 100}
    answer = measure({**vars(wanted), **work, "duration_s": wanted.duration})
    if "error" in answer:
        print(answer["error"], file=sys.stderr)
        return 1
    starts = answer["starts_ns"]
    periods = sorted((after - before) / 1e6 for before, after in zip(starts, starts[1:]))
    print(f"{len(starts)} frames, period p50 {periods[len(periods) // 2]:.3f} ms, most {periods[-1]:.3f} ms")
    return 0


if __name__ == "__main__":
    sys.exit(main())
