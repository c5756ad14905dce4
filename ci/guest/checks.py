"""What must hold of what a guest said. Causes and accounts are judged; times under qemu are printed only."""

import json
import pathlib
import re
import statistics

import machine

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SNAPSHOT = ROOT / "crates/cli/tests/rights/snapshots/rights__refused__limit_of_ten.snap"
INJECTED = "injected"
# The share of the injected thread's turns on a core that must be found. They were counted every 10 ms.
FOUND = (0.98, 1.02)
CLASSES = ("hardware", "nmi", "irq", "softirq", "thread")


class Checks:
    """All checks of one guest; `failed` has a line for each that does not hold."""

    def __init__(self, flavour: str, guest: machine.Guest, rounds: int):
        self.flavour = flavour
        self.said = guest.said
        self.rounds = range(1, rounds + 1)
        self.failed: list[str] = []

    def check(self, holds: bool, otherwise: str) -> None:
        """Notes what does not hold."""
        if not holds:
            self.failed.append(f"{self.flavour}: {otherwise}")

    def text(self, name: str, status: int = 0) -> str:
        """What a command wrote that had to end with this status."""
        said = self.said.get(name)
        if said is None:
            self.check(False, f"{name}: nothing was said")
            return ""
        errors = self.said.get(f"{name}.err")
        because = f": {errors.text.strip()}" if errors else ""
        self.check(said.status == status, f"{name}: exit status {said.status}, not {status}{because}")
        return said.text if said.status == status else ""

    def record(self, name: str) -> dict | None:
        """What it wrote as JSON."""
        text = self.text(name)
        return json.loads(text) if text else None

    def all(self) -> None:
        """Every check there is for this guest."""
        print(self.text("uname").strip())
        with_tracer = self.flavour.startswith("rt")
        names = [f"onbeat.noise.{round_}" for round_ in self.rounds]
        ours = [shown for name in names if (shown := self.noise(name, self.record(name)))]
        theirs = []
        if with_tracer:
            theirs = [shown for round_ in self.rounds if (shown := self.rtla(round_))]
            self.noise("onbeat.tracer.1", self.record("onbeat.tracer.1"))
            self.same(ours, theirs)
            self.tracer()
        else:
            said = self.said.get("rtla.refuses")
            self.check(said is not None and said.status != 0, "rtla works there: is it a kernel without the tracer?")
            because = self.said.get("rtla.refuses.err")
            print(f"rtla osnoise: exit status {said.status if said else '-'}: "
                  f"{'; '.join(because.text.split(chr(10))).strip('; ') if because else ''}")
        self.timers(with_tracer)
        self.experiment()
        self.rights()
        self.missing()
        self.killed()

    def counted(self, name: str, begin_ns: float, seen_ns: float) -> tuple[float, float]:
        """How often the injected thread got a core in that time, and how long it had one, in ns, as the scheduler counted it.

        Not its activations: where one begins as the one before it ends the thread keeps its core.
        """
        lines = (line.split() for line in self.text(f"{name}.counted").splitlines())
        samples = [(float(now) * 1e9, int(times), int(ran_ns)) for now, ran_ns, times in lines]
        begin, end = begin_ns, begin_ns + seen_ns
        self.check(samples[0][0] <= begin and end <= samples[-1][0], f"{name}: the scheduler's counts do not cover the measurement")
        times, ran_ns = (at(samples, end, which) - at(samples, begin, which) for which in (1, 2))
        return times, ran_ns

    def noise(self, name: str, record: dict | None) -> dict | None:
        """A record of ours: classes sum to the noise, the injected thread is found, interrupts have names."""
        if record is None:
            return None
        cpu = record["cpus"][0]
        parts = cpu["parts"]
        total = sum(parts[which]["ns"] for which in CLASSES) + parts["unexplained_ns"]
        self.check(total == cpu["noise_ns"], f"{name}: the classes sum to {total} ns, the noise is {cpu['noise_ns']} ns")
        causes = {(cause["class"], cause["name"]): (cause["count"], cause["total_ns"]) for cause in cpu["causes"]}
        self.check(("irq", "local_timer") in causes, f"{name}: no local_timer among the causes")
        shown = {
            "runtime_ns": cpu["runtime_ns"],
            "noise_ns": cpu["noise_ns"],
            "single_ns": cpu["max_single_ns"],
            "counts": [parts[which]["count"] for which in CLASSES],
            "causes": causes,
            "begin_ns": record["begin_ns"],
            "seen_ns": cpu["runtime_ns"],
        }
        return self.row(name, f"onbeat ({record['source']['backend']})", shown)

    def rtla(self, round_: int) -> dict | None:
        """A round of `rtla osnoise top`: its table, and the tracer's events added up."""
        name = f"rtla.noise.{round_}"
        rows = re.findall(r"^\s*1 #\d+((?:\s+[\d.]+){10})", self.text(name), re.MULTILINE)
        self.check(bool(rows), f"{name}: no row of CPU 1")
        if not rows:
            return None
        numbers = [float(number) for number in rows[-1].split()]
        runtime_us, noise_us, _, _, single_us, *counts = numbers
        causes = {}
        window, *lines = self.text(f"rtla.causes.{round_}").splitlines() or [""]
        self.check(bool(lines), f"{name}: no event of the tracer")
        if not lines:
            return None
        begin_ns, end_ns = (float(moment) * 1e9 for moment in window.split())
        for line in lines:
            kind, what, count, total = line.split("\t")
            causes[kind.removesuffix("_noise"), what] = (int(count), int(total))
        shown = {
            "runtime_ns": runtime_us * 1000,
            "noise_ns": noise_us * 1000,
            "single_ns": single_us * 1000,
            "counts": [int(count) for count in counts],
            "causes": causes,
            # A period that is not over is not in its table, but its events are in the trace.
            "begin_ns": begin_ns,
            "seen_ns": end_ns - begin_ns,
        }
        return self.row(name, "rtla osnoise", shown)

    def row(self, name: str, who: str, shown: dict) -> dict:
        """Prints one measurement, and checks the injected thread in it."""
        expected, expected_ns = self.counted(name, shown["begin_ns"], shown["seen_ns"])
        injected = [value for (kind, what), value in shown["causes"].items() if kind == "thread" and what == INJECTED]
        count, total = injected[0] if injected else (0, 0)
        shown["found"] = count / expected if expected else 0.0
        shown["mean_us"] = total / count / 1000 if count else 0.0
        shown["top"] = max(shown["causes"], key=lambda key: shown["causes"][key][1], default=("", "nobody"))
        share = 100 * shown["noise_ns"] / max(shown["runtime_ns"], 1)
        print(
            f"{name:18} {who:17} noise {share:6.2f} %, longest {shown['single_ns'] / 1000:7.0f} us; "
            f"hw nmi irq softirq thread {' '.join(map(str, shown['counts'])):22}; "
            f"{INJECTED} {count} of {expected:.0f}, {shown['mean_us']:.0f} us each; first {' '.join(shown['top'])}"
        )
        in_time = total / max(expected_ns, 1)
        # Printed only: the scheduler counts interrupts as time of the thread that they interrupt.
        print(f"{'':18} time of {INJECTED}: {100 * in_time:.0f} % of what the scheduler counted")
        self.check(count > 0, f"{name}: {INJECTED} is not among the causes")
        holds = FOUND[0] <= shown["found"] <= FOUND[1]
        self.check(holds, f"{name}: {who} found {INJECTED} {count} times, and it got a core {expected:.0f} times")
        return shown

    def same(self, ours: list[dict], theirs: list[dict]) -> None:
        """Both found the same, and blame the same first."""
        if not ours or not theirs:
            return
        for what, unit, of in (
            ("noise", "%", lambda one: 100 * one["noise_ns"] / one["runtime_ns"]),
            ("interrupts", "per s", lambda one: 1e9 * one["counts"][CLASSES.index("irq")] / one["runtime_ns"]),
            ("turns of threads", "per s", lambda one: 1e9 * one["counts"][CLASSES.index("thread")] / one["runtime_ns"]),
            ("found of injected", "%", lambda one: 100 * one["found"]),
            ("injected, each", "us", lambda one: one["mean_us"]),
        ):
            print(f"{what:18} onbeat {spread(map(of, ours))} {unit}, rtla {spread(map(of, theirs))} {unit}")
        tops = {one["top"] for one in ours + theirs}
        self.check(len(tops) == 1, f"onbeat and rtla blame different causes first: {sorted(tops)}")

    def timers(self, with_tracer: bool) -> None:
        """Latencies of timers beside cyclictest, and rtla where it works: printed; judged is that all wake-ups are there."""
        columns: dict[str, list[tuple[float, float, float]]] = {}
        for round_ in self.rounds:
            record = self.record(f"onbeat.timerlat.{round_}")
            if record:
                cpu = record["cpus"][0]
                summary = cpu["user"]["summary"]
                took = (summary["median_ns"] / 1000, summary["p99_ns"] / 1000, summary["max_ns"] / 1000)
                columns.setdefault("onbeat timerlat (user)", []).append(took)
                self.check(summary["count"] > 0, f"onbeat.timerlat.{round_}: no wake-up")
            text = self.text(f"cyclictest.{round_}")
            counts = [(int(us), int(count)) for us, count in re.findall(r"^(\d{6}) (\d+)", text, re.MULTILINE)]
            if "# Max Latencies" in text:
                longest = float(re.search(r"# Max Latencies: (\d+)", text)[1])
                over = int(re.search(r"# Histogram Overflows: (\d+)", text)[1])
                columns.setdefault("cyclictest", []).append((*quantiles(counts, over, longest), longest))
            if with_tracer:
                text = self.text(f"rtla.timerlat.{round_}")
                counts = [(int(us), int(count)) for us, count in re.findall(r"^(\d+)\s+\d+\s+(\d+)\s*$", text, re.MULTILINE)]
                over = re.search(r"^over:\s+\d+\s+(\d+)", text, re.MULTILINE)
                longest = re.search(r"^max:\s+\d+\s+(\d+)", text, re.MULTILINE)
                if longest:
                    most = float(longest[1])
                    columns.setdefault("rtla timerlat (thread)", []).append((*quantiles(counts, int(over[1]), most), most))
                record = self.record(f"onbeat.timerlat.k.{round_}")
                if record:
                    summary = record["cpus"][0]["thread"]["summary"]
                    took = (summary["median_ns"] / 1000, summary["p99_ns"] / 1000, summary["max_ns"] / 1000)
                    columns.setdefault("onbeat, tracer (thread)", []).append(took)
                    self.check(summary["count"] > 0, f"onbeat.timerlat.k.{round_}: no wake-up")
        for who, rounds in columns.items():
            median, p99, longest = ([one[i] for one in rounds] for i in range(3))
            print(f"{who:23} p50 {spread(median)} us, p99 {spread(p99)} us, most {spread(longest)} us")

    def experiment(self) -> None:
        """As things are and tuned, each as a real-time thread, too: CPU 1 is isolated."""
        text = self.text("experiment")
        for name in ("as-is", "fifo-1", "tuned", "tuned-fifo-1"):
            self.check(re.search(rf"^{name} ", text, re.MULTILINE) is not None, f"experiment: no row {name} in:\n{text}")
        self.check("<svg" in self.text("experiment.plot"), "experiment: its plot is none")
        print(text.strip())

    def tracer(self) -> None:
        """What only the kernel's timerlat tracer can do, and other events beside it."""
        stack = self.text("tracer.stack", 2)
        for part in ("hit stop", "IRQ latency", "Blocking thread stack trace", "-> ", "Tasks on the measured CPUs"):
            self.check(part in stack, f"tracer.stack: `{part}` is not in:\n{stack}")
        trace = self.text("tracer.stack.trace")
        self.check("context thread timer_latency" in trace, f"tracer.stack: no latency in its trace of {len(trace)} characters")
        self.text("tracer.events")
        trace = self.text("tracer.events.trace")
        for part in ("context thread timer_latency", "sched_switch: ", "thread_noise: "):
            self.check(part in trace, f"tracer.events: `{part}` is not in its trace")
        self.check("prev_pid=0 " not in trace, "tracer.events: the filter is not kept")
        self.check("next_comm" in self.text("tracer.events.counted"), "tracer.events: the trigger has counted nothing")
        threads = self.said.get("tracer.threads", machine.Said("", -1))
        if threads.status == 1:
            errors = self.said.get("tracer.threads.err", machine.Said("", -1)).text
            self.check("timerlat_fd" in errors, f"tracer.threads: {errors}")
            print(f"timerlat -u, -U: {errors.strip()}")
        else:
            for name in ("tracer.threads", "tracer.load"):
                record = self.record(name)
                if record:
                    cpu = record["cpus"][0]
                    self.check(cpu["user"]["summary"]["count"] > 0, f"{name}: no return to the program: {record['notes']}")
                    print(f"{name}: {cpu['count']} wake-ups, {cpu['user']['summary']['count']} returns to the program")
        record = self.record("hw")
        if record:
            parts = record["cpus"][0]["parts"]
            self.check(parts["irq"]["count"] == 0, f"hw: interrupts were on: {parts}")
            print(f"hw: {parts['hardware']['count']} gaps of hardware, {parts['nmi']['count']} NMIs, interrupts off")

    def rights(self) -> None:
        """The refusal of a priority above the limit, as the snapshot of the tests has it."""
        said = ""
        for title, name, status in (("not strict", "rights.lenient", 0), ("--strict", "rights.strict", 1)):
            self.text(name, status)
            errors = self.said.get(f"{name}.err", machine.Said("", -1))
            lines = [line for line in errors.text.splitlines() if not line.startswith("note: ")]
            text = "\n".join(lines).replace("got o:0:", "got OWN:").replace(", o:0 obtained", ", OWN obtained")
            said += f"{title}\nexit status Some({errors.status})\n{text}\n\n"
        wanted = SNAPSHOT.read_text().split("---\n", 2)[2]
        same = said.strip() == wanted.strip()
        self.check(same, f"RLIMIT_RTPRIO of 10: what is said is not {SNAPSHOT.name}, but:\n{said}")
        self.text("rights.granted", 0)
        self.text("rights.far", 1)
        far = self.said.get("rights.far.err", machine.Said("", -1)).text
        limit = "priority 80 is above the limit RLIMIT_RTPRIO, which is 10"
        self.check(limit in far, f"RLIMIT_RTPRIO of 10: f:80 is refused with: {far}")
        print(f"RLIMIT_RTPRIO of 10: f:11 and f:80 refused {'as in the snapshot' if same else 'differently'}, r:10 granted")

    def missing(self) -> None:
        """Where something is missing, that is said, with what to do, and what is left still works."""
        for name, status, parts in (
            ("missing.paranoid", 0, ("classes but no names", "perf_event_paranoid is 4", "CAP_PERFMON")),
            ("missing.perf", 1, ("the backend `perf` is not available", "perf_event_paranoid is 4", "setcap")),
            ("missing.tracefs", 0, ("classes but no names", "mount -t tracefs")),
            ("missing.offline", 1, ("CPU 1 is offline", "/sys/devices/system/cpu/cpu1/online")),
            ("missing.others", 0, ()),
            ("missing.timer", 1, ("CPU 1 is offline",)),
            ("missing.senseless", 1, ("--cpus",)),
            ("missing.far", 1, ("CPU 77 does not exist",)),
        ):
            self.text(name, status)
            errors = self.said.get(f"{name}.err", machine.Said("", -1)).text
            for part in parts:
                self.check(part in errors, f"{name}: `{part}` is not in: {errors}")
        print("rights, tracefs or a CPU missing: said, with what to do")

    def killed(self) -> None:
        """What a killed measurement left is taken away by the next one, and all settings are as they were."""
        during = self.said.get("killed.during", machine.Said("", -1)).text
        self.check("onbeat-" in during, f"killed: there was no trace instance of ours to be left: {during}")
        self.text("killed.next")
        errors = self.said.get("killed.next.err", machine.Said("", -1)).text
        self.check("left by a killed process" in errors, f"killed.next: nothing is said of what was left: {errors}")
        state = self.said.get("killed.state", machine.Said("nothing was said", -1))
        self.check(state.status == 0, f"killed: settings or instances differ from before:\n{state.text}")
        print("killed in the middle: the next one puts all back" if state.status == 0 else "killed: something is left")


def at(samples: list[tuple[float, int, int]], moment_ns: float, which: int) -> float:
    """A count at a moment between two samples of it."""
    after = next((i for i, sample in enumerate(samples) if sample[0] >= moment_ns), len(samples) - 1)
    before, later = samples[max(after - 1, 0)], samples[after]
    share = (moment_ns - before[0]) / max(later[0] - before[0], 1)
    return before[which] + (later[which] - before[which]) * min(max(share, 0), 1)


def quantiles(counts: list[tuple[int, int]], over: int, longest: float) -> tuple[float, float]:
    """Median and 99th percentile of a histogram with some beyond its end."""
    total = sum(count for _, count in counts) + over

    def at(share: float) -> float:
        seen = 0
        for us, count in counts:
            seen += count
            if seen >= share * total:
                return float(us)
        return longest

    return at(0.5), at(0.99)


def spread(values) -> str:
    """The middle of the rounds, with the least and the most of them."""
    values = list(values)
    middle = f"{statistics.median(values):.1f}"
    return middle if len(values) == 1 else f"{middle} ({min(values):.1f} to {max(values):.1f})"
