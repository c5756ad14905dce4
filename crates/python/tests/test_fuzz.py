"""Random pipelines of operators that misbehave: whatever they do, a run ends with a record or an exception of the package.

``ONBEAT_FUZZ`` sets the number of tries (300), ``ONBEAT_FUZZ_SEED`` where they begin: try N has the seed ``seed + N``.
"""

import faulthandler
import gc
import os
import random
import threading

import numpy as np
import onbeat
import pytest

TRIES = int(os.environ.get("ONBEAT_FUZZ", "300"))
SEED = int(os.environ.get("ONBEAT_FUZZ_SEED", "0"))
KEPT = []


class Deliberate(Exception):
    pass


def nothing(pick, me, cx, arrays):
    return None


def raises(pick, me, cx, arrays):
    raise pick.choice([Deliberate("deliberate"), ValueError("deliberate"), MemoryError(), SystemError(), RecursionError()])


def wrong_return(pick, me, cx, arrays):
    return pick.choice(["x", -1, 10**30, 2.5, (1, 2, 3), (None, None), object(), np.zeros(3), b"", float("nan"), (-1, 0)])


def word(pick, me, cx, arrays):
    return pick.choice([onbeat.WAIT, onbeat.AGAIN, onbeat.DONE, onbeat.until(0), onbeat.until(2**63 - 1), (0, 0), 0])


def keeps(pick, me, cx, arrays):
    for array in arrays:
        KEPT.append(pick.choice([array, array[:1], memoryview(array), array.reshape(-1, 1), cx]))


def keeps_chunks(pick, me, cx, arrays):
    for array in arrays:
        KEPT.append(onbeat.keep(array))


def writes(pick, me, cx, arrays):
    for array in arrays:
        array[:] = pick.random()


def resizes(pick, me, cx, arrays):
    for array in arrays:
        if pick.random() < 0.5:
            array.resize(10**6)
        else:
            array.shape = (1, -1)


def calls_back(pick, me, cx, arrays):
    if me.pipeline is not None:
        pick.choice([me.pipeline.run, me.pipeline.plan, me.pipeline.to_toml, me.pipeline.check])()


def in_a_thread(pick, me, cx, arrays):
    failures = []

    def body():
        try:
            cx.note("from a thread")
            arrays[0][:] = 1
        except Exception as error:  # noqa: BLE001: whatever it is, it must be one
            failures.append(error)

    thread = threading.Thread(target=body)
    thread.start()
    if pick.random() < 0.9:
        thread.join()
    else:
        KEPT.append(thread)


def collects(pick, me, cx, arrays):
    loop = [arrays, cx]
    loop.append(loop)
    del loop
    gc.collect()


def deletes(pick, me, cx, arrays):
    for name in ("step", "_values", "_inputs", "__dict__"):
        try:
            delattr(pick.choice([me, type(me)]), name)
        except AttributeError:
            pass


def speaks(pick, me, cx, arrays):
    calls = [
        lambda: cx.note("\0" * 10),
        lambda: cx.tag(pick.choice([-1, 0, 10**9]), "x", pick.choice([1, "y", None])),
        lambda: cx.set_rate(pick.choice([0.0, -1.0, float("inf"), float("nan"), 48e3])),
        lambda: cx.set_time(pick.choice([-(2**62), 0, 2**62]), pick.choice([None, 0, 2**62])),
        lambda: cx.set_length_ns(pick.choice([-1, 0, 2**62])),
        lambda: cx.set_key(pick.choice(["", "k", "x" * 1000]), pick.choice([1, "y", None, 2**80])),
        lambda: cx.key("k"),
        lambda: cx.tags(),
        lambda: setattr(me, "gain", pick.choice(["3 dB", "three", None, float("nan"), 2])),
    ]
    for call in pick.sample(calls, 4):
        call()


DEEDS = [nothing] * 6 + [word, word, raises, wrong_return, keeps, keeps_chunks, writes, resizes]
DEEDS += [calls_back, in_a_thread, collects, speaks, deletes]


class Misbehaving:
    gain: onbeat.Param[float] = onbeat.param(0.0, unit="dB", live=True)
    pipeline = None

    def does(self, cx, *arrays):
        self.steps = getattr(self, "steps", 0) + 1
        arrays = [array for array in arrays if isinstance(array, np.ndarray)]
        if self.steps > 50:
            return onbeat.DONE
        if self.steps < self.from_step:
            return None
        return self.deed(self.pick, self, cx, arrays)


class Giver(onbeat.Operator):
    out: onbeat.Output[object]
    given = 0

    def step(self, cx, out):
        self.given += 1
        out.push(pick_value(self.given))
        return onbeat.DONE if self.given == 20 else onbeat.AGAIN


class Taker(onbeat.Operator):
    x: onbeat.Input[object]

    def step(self, cx, x):
        KEPT.append(x)


def pick_value(number):
    return [number, None, "text", [1, 2], {"a": KEPT}, 2.5, b"x"][number % 7]


#: Types of ports with the kinds that send and take them.
PORTS = {
    onbeat.Real: ("null.source", "null.sink"),
    onbeat.Complex: ("null.source.complex", "null.sink.complex"),
    onbeat.Bytes: ("null.source.bytes", "null.sink.bytes"),
    object: (Giver, Taker),
}


def operator(pick):
    """A class with random ports, and an instance of it."""
    sample = lambda: pick.choice([onbeat.Real] * 6 + list(PORTS))  # noqa: E731
    if pick.random() < 0.2:
        ports = {"x0": onbeat.InOut[pick.choice([onbeat.Real, onbeat.Complex, onbeat.Bytes])]}
    else:
        ports = {f"x{n}": onbeat.Input[sample()] for n in range(pick.choice([0, 1, 1, 1, 2]))}
        ports |= {f"y{n}": onbeat.Output[sample()] for n in range(pick.choice([0, 1, 1, 1, 2]))}
    deed = pick.choice(DEEDS)
    body = {"__annotations__": {**ports, "gain": onbeat.Param[float]}, "gain": onbeat.param(0.0, unit="dB", live=True)}
    body |= {"pick": pick, "deed": staticmethod(deed), "from_step": pick.choice([1, 1, 2, 5]), "pipeline": None}
    body["step"] = pick.choice([Misbehaving.does] * 40 + [None, lambda self: None, lambda self, *a, b: None])
    body["does"] = Misbehaving.does
    for name in ("start", "stop"):
        if pick.random() < 0.03:
            body[name] = pick.choice([lambda self, *a: 1 / 0, lambda self, *a: None, 3])
    if pick.random() < 0.05:
        body["decimation"] = pick.choice([0, -1, 2, "two", 2**70])
    cls = type(pick.choice(["Odd", "Öd", "x" * 300]), (onbeat.Operator,), body)
    return cls(gain=pick.choice([0, "3 dB"]))


def pipeline(pick):
    p = onbeat.Pipeline("fuzz", duration="0.2 s")
    nodes = []
    for _ in range(pick.randint(1, 4)):
        own = operator(pick)
        if pick.random() < 0.2:
            own.pipeline = p
        nodes.append(p.add(own))
    words = {"real": onbeat.Real, "complex": onbeat.Complex, "bytes": onbeat.Bytes, "object": object}
    for one in nodes:
        cls = type(one.operator)
        for name, word in cls._inputs + cls._in_place:
            if pick.random() < 0.98:
                kind = PORTS[words[word]][0]
                sized = {} if kind is Giver else {"size": pick.choice([1, 16, 1000]), "count": 100}
                p.connect(p.add(kind() if kind is Giver else kind, **sized), f"{one.name}.{name}")
        for name, word in cls._outputs + cls._in_place:
            if pick.random() < 0.98:
                kind = PORTS[words[word]][1]
                p.connect(f"{one.name}.{name}", p.add(kind() if kind is Taker else kind))
    if len(nodes) > 1 and pick.random() < 0.1:
        first, second = pick.sample(nodes, 2)
        p.connect(first, second, capacity=pick.choice([1, 2, 16]))
    return p


def one_try(pick):
    p = pipeline(pick)
    how = pick.choice([{"scheduler": "greedy"}, {"scheduler": "event", "workers": 2}, {"scheduler": "pinned", "workers": 2}])
    deed = pick.randrange(6)
    if deed == 0:
        with p.start(**how) as run:
            pick.choice([run.stop, run.pause, lambda: run.set("Odd.gain", 1.0), lambda: run.set("none", 1), gc.collect])()
    elif deed == 1:
        p.start(**how)  # nobody holds it
        gc.collect()
    else:
        record = p.run(**how)
        assert record.result.outcome


#: What may come out: the errors of the package, of wrong classes and arguments, and of runs that have ended.
EXPECTED = (onbeat.Error, TypeError, ValueError, AttributeError, RuntimeError)


def test_nothing_that_an_operator_does_crashes_or_hangs():
    outcomes = {"record": 0}
    for number in range(SEED, SEED + TRIES):
        # The watchdog of a test is too short for many tries: each gets its own.
        faulthandler.dump_traceback_later(60, exit=True)
        try:
            one_try(random.Random(number))
            outcomes["record"] += 1
        except EXPECTED as error:
            name = type(error).__name__
            outcomes[name] = outcomes.get(name, 0) + 1
            assert str(error), f"try {number}: {name} without a text"
        except BaseException as error:
            pytest.fail(f"try {number}: {type(error).__name__}: {error}")
        if number % 50 == 0:
            KEPT.clear()
            gc.collect()
    KEPT.clear()
    assert outcomes["record"] > TRIES // 20, outcomes
    assert outcomes.get("OperatorError", 0) > TRIES // 20, outcomes
    print(outcomes)
