"""The cases of `onbeat bench overhead` in Holoscan, in Python.

Directly:    python3 overhead.py tx_rx event 2 --iterations 10000 --warm-up 100
By onbeat:   onbeat bench overhead --peer holoscan
             It starts `overhead.py --serve` once and writes a line of JSON per run to it:
             {"case": "tx_rx", "scheduler": "event", "workers": 2, "iterations": 10000, "warm_up": 100}
             The answer is a line of JSON on stdout.

An answer has, in nanoseconds,
    wall_ns    time to construct, compose and run the application; the published method divides this by the iterations
    begin_ns   time at which the first operator at the end of the graph had counted `warm_up` iterations; on CLOCK_MONOTONIC
    end_ns     time at which the last of these operators had counted all
or "error", in words.
"""

import argparse
import json
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
    """The application, as a class. Holoscan is imported here, after `prepare`."""
    from holoscan.conditions import CountCondition
    from holoscan.core import Application, Operator, OperatorSpec
    from holoscan.schedulers import EventBasedScheduler, GreedyScheduler

    class Counted(Operator):
        """Counts its steps, and reads the clock at two of them."""

        def __init__(self, fragment, *conditions, warm_up, iterations, name):
            self.warm_up, self.iterations = warm_up, iterations
            self.count, self.begin_ns, self.end_ns = 0, None, None
            super().__init__(fragment, *conditions, name=name)

        def count_one(self):
            self.count += 1
            if self.count == self.warm_up or (self.warm_up == 0 and self.count == 1):
                self.begin_ns = time.monotonic_ns()
            if self.count == self.iterations:
                self.end_ns = time.monotonic_ns()

    class Alone(Counted):
        def setup(self, spec: OperatorSpec):
            pass

        def compute(self, op_input, op_output, context):
            self.count_one()

    class Tx(Operator):
        def __init__(self, fragment, *conditions, name):
            self.next = 0
            super().__init__(fragment, *conditions, name=name)

        def setup(self, spec: OperatorSpec):
            spec.output("out")

        def compute(self, op_input, op_output, context):
            self.next += 1
            op_output.emit(self.next, "out")

    class Pass(Operator):
        def setup(self, spec: OperatorSpec):
            spec.input("in")
            spec.output("out")

        def compute(self, op_input, op_output, context):
            op_output.emit(op_input.receive("in") + 1, "out")

    class Rx(Counted):
        def setup(self, spec: OperatorSpec):
            self.sum = 0
            spec.input("in")

        def compute(self, op_input, op_output, context):
            self.sum += op_input.receive("in")
            self.count_one()

    class Overhead(Application):
        def __init__(self, case, warm_up, iterations):
            super().__init__()
            self.case, self.warm_up, self.iterations = case, warm_up, iterations
            self.ends = []

        def end(self, kind, name, *conditions):
            operator = kind(self, *conditions, warm_up=self.warm_up, iterations=self.iterations, name=name)
            self.ends.append(operator)
            return operator

        def compose(self):
            count = lambda: CountCondition(self, self.iterations)  # noqa: E731
            if self.case == "two_operators":
                for name in ("first", "second"):
                    self.add_operator(self.end(Alone, name, count()))
                return
            tx = Tx(self, count(), name="tx")
            if self.case == "tx_rx":
                self.add_flow(tx, self.end(Rx, "rx"))
            elif self.case == "chain_4":
                first, second = Pass(self, name="pass0"), Pass(self, name="pass1")
                self.add_flow(tx, first)
                self.add_flow(first, second)
                self.add_flow(second, self.end(Rx, "rx"))
            elif self.case == "fan_out_4":
                for number in range(4):
                    self.add_flow(tx, self.end(Rx, f"rx{number}"))
            else:
                raise ValueError(f"there is no case {self.case}")

    def scheduler(application, name, workers):
        if name == "greedy":
            return GreedyScheduler(application, name="greedy")
        if name == "event":
            return EventBasedScheduler(application, worker_thread_number=workers, name="event")
        raise ValueError(f"there is no scheduler {name}")

    def measure(case, name, workers, iterations, warm_up):
        before_ns = time.monotonic_ns()
        application = Overhead(case, warm_up, iterations)
        application.scheduler(scheduler(application, name, workers))
        application.run()
        wall_ns = time.monotonic_ns() - before_ns
        short = [end.name for end in application.ends if end.count != iterations]
        if short:
            counts = ", ".join(f"{end.name} made {end.count}" for end in application.ends)
            return {"error": f"of {iterations} iterations {counts}"}
        return {
            "wall_ns": wall_ns,
            "begin_ns": min(end.begin_ns for end in application.ends),
            "end_ns": max(end.end_ns for end in application.ends),
        }

    return measure


def serve(measure, version):
    """Answers each line of stdin on the original stdout; output of the libraries goes to stderr."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    print(json.dumps({"holoscan": version, "python": sys.version.split()[0]}), file=answers, flush=True)
    for line in sys.stdin:
        wanted = json.loads(line)
        try:
            answer = measure(
                wanted["case"], wanted["scheduler"], wanted["workers"], wanted["iterations"], wanted["warm_up"]
            )
        except Exception as error:  # noqa: BLE001: onbeat shows any error
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", nargs="?", default="tx_rx", help="two_operators, tx_rx, chain_4 or fan_out_4")
    parser.add_argument("scheduler", nargs="?", default="greedy", help="greedy or event")
    parser.add_argument("workers", nargs="?", type=int, default=1)
    parser.add_argument("--iterations", type=int, default=10_000)
    parser.add_argument("--warm-up", type=int, default=100)
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
    answer = measure(wanted.case, wanted.scheduler, wanted.workers, wanted.iterations, wanted.warm_up)
    if "error" in answer:
        print(answer["error"], file=sys.stderr)
        return 1
    iterations = wanted.iterations
    print(f"process: {answer['wall_ns'] / iterations / 1000:.1f} us per iteration")
    counted = iterations - wanted.warm_up
    print(f"steady: {(answer['end_ns'] - answer['begin_ns']) / counted / 1000:.1f} us per iteration")
    return 0


if __name__ == "__main__":
    sys.exit(main())
