"""Operators written in Python: ports, parameters, results of steps."""

from __future__ import annotations

import numpy as np
import pytest

import onbeat as ob


class Ramp(ob.Operator):
    """0, 1, 2, ... in chunks of ``size`` samples."""

    out: ob.Output[ob.Real]
    count: ob.Param[int] = ob.param(10_000)
    size: ob.Param[int] = ob.param(1_000)

    def start(self, cx):
        self.at = 0

    def step(self, cx, out):
        made = min(self.size, len(out), self.count - self.at)
        if made == 0:
            return ob.DONE
        out[:made] = np.arange(self.at, self.at + made, dtype=np.float32)
        self.at += made
        return made


class Keep(ob.Operator):
    """Keeps copies of all samples."""

    x: ob.Input[ob.Real]

    def start(self, cx):
        self.parts = []

    def step(self, cx, x):
        self.parts.append(x.copy())

    @property
    def samples(self):
        return np.concatenate(self.parts) if self.parts else np.zeros(0, np.float32)


class Double(ob.Operator):
    x: ob.Input[ob.Real]
    y: ob.Output[ob.Real]

    def step(self, cx, x, y):
        np.multiply(x, 2, out=y)


def through(*operators, source=None, **options):
    """Runs operators between a ramp and a sink. Returns the samples that come out, and the record."""
    p = ob.Pipeline("test", **options)
    keep = Keep()
    p.connect(p.add(source or Ramp()), *[p.add(operator) for operator in operators], p.add(keep))
    record = p.run()
    return keep.samples, record


def failure_of(*operators, **options):
    with pytest.raises(ob.OperatorError) as caught:
        through(*operators, **options)
    return caught.value


@pytest.mark.parametrize("scheduler", ["greedy", "pinned", "event"])
@pytest.mark.parametrize("size", [1, 7, 1_000, 4_096])
def test_samples_pass_in_order_under_every_scheduler(scheduler, size):
    found, record = through(Double(), source=Ramp(size=size, count=min(10_000, 300 * size)), scheduler=scheduler, workers=2 if scheduler != "greedy" else None)
    assert np.array_equal(found, 2 * np.arange(min(10_000, 300 * size), dtype=np.float32))
    assert record.operators["Double"].state == "done"


def test_inputs_are_read_only_and_outputs_are_not():
    class Look(Double):
        def step(self, cx, x, y):
            flags.append((x.flags.writeable, y.flags.writeable, x.dtype, y.dtype))
            with pytest.raises(ValueError):
                x[0] = 1
            with pytest.raises(ValueError):
                x.flags.writeable = True
            y[:] = x

    flags = []
    through(Look())
    assert set(flags) == {(False, True, np.dtype(np.float32), np.dtype(np.float32))}


def test_nothing_is_copied_on_the_way():
    class First(Double):
        def step(self, cx, x, y):
            addresses.append(y.__array_interface__["data"][0])
            y[:] = x

    class Second(Double):
        def step(self, cx, x, y):
            assert x.__array_interface__["data"][0] == addresses[-1]
            y[:] = x

    addresses = []
    _, record = through(First(), Second())
    assert record.stores[0].copies == 0 and len(addresses) == 10


@pytest.mark.parametrize(("down", "up"), [(2, 1), (1, 3), (5, 2), (7, 1)])
def test_rates_change(down, up):
    class Pick(ob.Operator):
        x: ob.Input[ob.Real]
        y: ob.Output[ob.Real]
        decimation = down
        interpolation = up

        def step(self, cx, x, y):
            assert len(x) % down == 0 and len(y) == len(x) * up // down
            y[:] = np.repeat(x[::down], up)

    found, _ = through(Pick(), source=Ramp(size=999))
    whole = 10_000 - 10_000 % down
    assert np.array_equal(found, np.repeat(np.arange(0, whole, down, dtype=np.float32), up))


def test_a_step_may_use_and_make_less():
    class Slow(Double):
        def step(self, cx, x, y):
            count = min(len(x), 100)
            y[:count] = x[:count]
            return count, count

    found, _ = through(Slow())
    assert np.array_equal(found, np.arange(10_000, dtype=np.float32))


def test_a_step_that_needs_more_gets_it_in_one_piece():
    class Blocks(ob.Operator):
        x: ob.Input[ob.Real]
        y: ob.Output[ob.Real]

        def step(self, cx, x, y):
            if len(x) < 1_500:
                return ob.WAIT
            y[:1_500] = x[:1_500]
            return 1_500, 1_500

    found, _ = through(Blocks(), source=Ramp(count=9_000))
    assert np.array_equal(found, np.arange(9_000, dtype=np.float32))


def test_two_inputs_are_aligned():
    class Sum(ob.Operator):
        a: ob.Input[ob.Real]
        b: ob.Input[ob.Real]
        y: ob.Output[ob.Real]

        def step(self, cx, a, b, y):
            np.add(a, b, out=y)

    p, keep = ob.Pipeline("two"), Keep()
    total = p.add(Sum())
    p.connect(p.add(Ramp(size=300)), total["a"])
    p.connect(p.add(Ramp(size=1_000)), total["b"])
    p.connect(total, p.add(keep))
    p.run()
    assert np.array_equal(keep.samples, 2 * np.arange(10_000, dtype=np.float32))


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [(ob.Bytes, np.uint8), (ob.Int16, np.int16), (ob.Int32, np.int32), (ob.Real64, np.float64), (ob.Complex, np.complex64), (ob.Complex128, np.complex128)],
)
def test_every_type_of_samples(kind, dtype):
    @ob.operator
    def source() -> kind:
        return next(parts, None)

    @ob.operator
    def sink(x: kind):
        got.append(x.copy())

    sent = [np.arange(start, start + 100).astype(dtype) for start in range(0, 1_000, 100)]
    parts, got = iter(sent), []
    p = ob.Pipeline("types")
    p.connect(p.add(source), p.add(sink))
    p.run()
    assert np.array_equal(np.concatenate(got), np.concatenate(sent)) and got[0].dtype == dtype


def test_values_and_objects():
    @ob.operator
    def numbers() -> int:
        return next(counted, None)

    @ob.operator
    def as_dict(n: int) -> object:
        return {"n": n, "self": objects}

    @ob.operator
    def is_even(thing: object) -> bool:
        return thing["n"] % 2 == 0 and thing["self"] is objects

    @ob.operator
    def as_text(even: bool) -> str:
        return "even" if even else "odd"

    @ob.operator
    def end(text: str):
        found.append(text)

    counted, objects, found = iter(range(100)), [], []
    p = ob.Pipeline("values")
    p.connect(p.add(numbers), p.add(as_dict), p.add(is_even), p.add(as_text), p.add(end))
    p.run()
    assert found == ["even", "odd"] * 50


def test_an_emitter_refuses_what_has_no_room():
    class Many(ob.Operator):
        out: ob.Output[int]

        def step(self, cx, out):
            room.append(out.room)
            for n in range(1_000):
                out.push(n)

    @ob.operator
    def end(n: int):
        pass

    room = []
    p = ob.Pipeline("many")
    p.connect(p.add(Many()), p.add(end), capacity=8)
    with pytest.raises(ob.OperatorError, match="room for 8 messages"):
        p.run()
    assert room == [8]


def test_functions_have_parameters():
    @ob.operator
    def scale(x: ob.Real, gain: float = 2.0) -> ob.Real:
        return x * gain

    found, _ = through(scale(gain=3))
    assert np.array_equal(found, 3 * np.arange(10_000, dtype=np.float32))
    with pytest.raises(TypeError, match="has no parameter `loud`: it has gain"):
        scale(loud=1)


class Limited(Double):
    shift: ob.Param[float] = ob.param(0.0, unit="Hz", live=True)
    gain: ob.Param[float] = ob.param(1.0, at_least=0.0, at_most=8.0, live=True)
    mode: ob.Param[str] = ob.param("fast", choices=("fast", "good"))


def test_parameters_are_checked():
    assert Limited(shift="-45 kHz").shift == -45e3
    for values, text in [
        ({"gain": 9}, "`gain` is 9.0: it is at most 8.0"),
        ({"gain": "much"}, "of type str: it is of type float"),
        ({"mode": "best"}, "it is one of 'fast', 'good'"),
        ({"shift": "3 parsecs"}, "`shift`"),
    ]:
        with pytest.raises((TypeError, ValueError)) as caught:
            Limited(**values)
        assert text in str(caught.value)


@pytest.mark.parametrize(
    ("returned", "text"),
    [
        ("samples", "`step` returned str"),
        (1.5, "`step` returned float"),
        (True, "`step` returned bool"),
        ((1, 2, 3, 4), "`step` returned tuple"),
        (5_000, "returned 5000 as the samples it made: its output has room for 1000"),
        (-1, "returned -1"),
        ((2_000, 0), "returned 2000 as the samples it used: its input has 1000"),
        ((1, None), "`step` returned tuple"),
    ],
)
def test_wrong_results_are_named(returned, text):
    class Wrong(Double):
        def step(self, cx, x, y):
            return returned

    assert text in str(failure_of(Wrong()))


def test_exceptions_keep_type_traceback_and_place():
    class Mine(Exception):
        pass

    class Bad(Double):
        def step(self, cx, x, y):
            raise Mine("no antenna")

    error = failure_of(Bad())
    assert isinstance(error.__cause__, Mine)
    assert "operator `Bad`: Mine: no antenna (" in str(error) and "test_operators.py:" in str(error)
    assert error.__cause__.__traceback__.tb_frame.f_code.co_name == "step"
    assert error.record.operators["Bad"].state == "failed"


@pytest.mark.parametrize("method", ["start", "stop"])
def test_exceptions_of_start_and_stop(method):
    class Bad(Double):
        pass

    def fail(self, cx, *ending):
        raise OSError("no device")

    setattr(Bad, method, fail)
    error = failure_of(Bad())
    assert isinstance(error.__cause__, OSError) and "no device" in str(error)


@pytest.mark.parametrize("what", ["x", "y", "x[3:]", "y[::2]", "memoryview(x)", "np.asarray(y)"])
def test_an_array_that_is_kept_is_an_error_and_stays_valid(what):
    class Keeper(Double):
        def step(self, cx, x, y):
            y[:] = x
            kept.append(eval(what))

    kept = []
    error = failure_of(Keeper())
    assert f"the array of {'input' if 'x' in what else 'output'} `" in str(error.__cause__)
    assert "is used after the step" in str(error.__cause__)
    first = {"x[3:]": 3.0}.get(what, 0.0)
    assert np.asarray(kept[0])[0] == first and np.asarray(kept[0])[1] > first


def test_keep_lets_a_chunk_outlive_its_step():
    class Delay(ob.Operator):
        x: ob.Input[ob.Real]

        def step(self, cx, x):
            kept[:] = [ob.keep(x)]

    kept = []
    p = ob.Pipeline("keep")
    p.connect(p.add(Ramp()), p.add(Delay()))
    p.run()
    assert np.array_equal(kept[0], np.arange(9_000, 10_000, dtype=np.float32))


def test_an_output_cannot_be_kept():
    class Keeper(Double):
        def step(self, cx, x, y):
            ob.keep(y)

    assert "an output array cannot be kept" in str(failure_of(Keeper()))


def test_the_context_ends_with_the_step():
    class Leak(Double):
        def step(self, cx, x, y):
            contexts.append(cx)
            assert cx.now_ns > 0 and cx.name == "Leak"
            y[:] = x

    contexts = []
    through(Leak())
    with pytest.raises(RuntimeError, match="used after the step"):
        _ = contexts[0].now_ns


def test_the_context_refuses_other_threads():
    import threading

    class Threads(Double):
        def step(self, cx, x, y):
            def look():
                try:
                    cx.note("from elsewhere")
                except RuntimeError as error:
                    errors.append(str(error))

            thread = threading.Thread(target=look)
            thread.start()
            thread.join()
            y[:] = x

    errors = []
    through(Threads())
    assert len(errors) == 10 and "on another thread" in errors[0]


def test_tags_rates_and_positions_pass():
    class Marks(ob.Operator):
        out: ob.Output[ob.Real]
        rate_hz = 48_000.0

        def start(self, cx):
            self.left = 3

        def step(self, cx, out):
            if self.left == 0:
                return ob.DONE
            self.left -= 1
            out[:] = 0
            cx.tag(10, "mark", self.left)
            return 1_000

    class Half(ob.Operator):
        x: ob.Input[ob.Real]
        y: ob.Output[ob.Real]
        decimation = 2

        def step(self, cx, x, y):
            y[:] = x[::2]

    class End(ob.Operator):
        x: ob.Input[ob.Real]

        def step(self, cx, x):
            seen.append((cx.rate_hz, cx.position, cx.tags))

    seen = []
    p = ob.Pipeline("tags")
    p.connect(p.add(Marks()), p.add(Half()), p.add(End()))
    p.run()
    assert seen == [(24_000.0, 500 * n, [(5, "mark", 2 - n)]) for n in range(3)]


def test_shapes_are_the_dimensions_of_arrays(tmp_path):
    frames = np.arange(4 * 6 * 5, dtype=np.float32).reshape(4, 6, 5)
    np.save(tmp_path / "frames.npy", frames)

    class Look(Double):
        def step(self, cx, x, y):
            shapes.append((x.shape, y.shape))
            y[:] = x

    shapes = []
    p = ob.Pipeline("frames", output=str(tmp_path))
    p.connect(p.add("npy.source", path=str(tmp_path / "frames.npy"), rate=10), p.add(Look()), p.add("npy.sink", path="out.npy"))
    p.run(pace="fast")
    assert shapes == [((6, 5), (6, 5))] * 4
    assert np.array_equal(np.load(tmp_path / "out.npy").reshape(4, 6, 5), frames)


def test_live_parameters_change_while_it_runs():
    class Endless(ob.Operator):
        out: ob.Output[ob.Real]

        def step(self, cx, out):
            out[:] = 1

    p = ob.Pipeline("live")
    limited = Limited()
    p.connect(p.add(Endless()), p.add(limited), p.add("null.sink"))
    with p.start() as run:
        run.set("Limited.gain", 3)
        assert limited.gain == 3.0
        with pytest.raises(RuntimeError, match="it is at most 8.0"):
            run.set("Limited.gain", 9)
        with pytest.raises(RuntimeError, match="no parameter `mode` that can be changed"):
            run.set("Limited.mode", "good")
        with pytest.raises(ValueError, match="say which operator's"):
            run.set("gain", 1)
    assert run.result.result.outcome == "stopped"


def test_classes_are_checked_when_they_are_made():
    with pytest.raises(TypeError, match=r"step\(self, cx, x, y\)"):

        class Few(ob.Operator):
            x: ob.Input[ob.Real]
            y: ob.Output[ob.Real]

            def step(self, cx, x):
                pass

    with pytest.raises(TypeError, match="there is no message of type list"):

        class Odd(ob.Operator):
            x: ob.Input[list]

    with pytest.raises(TypeError, match="annotate argument `x`"):

        @ob.operator
        def bare(x):
            pass


class Negate(ob.Operator):
    x: ob.InOut[ob.Real]

    def step(self, cx, x):
        assert x.flags.writeable and x.dtype == np.float32
        np.negative(x, out=x)


def test_samples_change_in_place():
    addresses, heard = [], []

    class Look(Negate):
        def step(self, cx, x):
            addresses.append(x.__array_interface__["data"][0])
            heard.append((cx.rate_hz, cx.position, cx.tags))
            cx.tag(0, "seen", len(addresses))
            super().step(cx, x)

    class Rated(Ramp):
        rate_hz = 48e3

    found, record = through(Look(), Look(), source=Rated())
    assert np.array_equal(found, np.arange(10_000, dtype=np.float32))
    assert addresses[0::2] == addresses[1::2], "the second operator has the chunk of the first"
    assert record.stores[0].copies == 0 and record.edges["Look.x -> Look2.x"].received == 10
    assert heard[0] == (48e3, 0, []) and heard[3] == (48e3, 1_000, [(0, "seen", 3)])


def test_a_shared_chunk_is_copied_before_it_changes():
    class Hold(Keep):
        def step(self, cx, x):
            self.parts.append(ob.keep(x))

    p = ob.Pipeline("shared")
    source, plain, changed = p.add(Ramp()), Hold(), Keep()
    p.connect(source, p.add(plain, "plain"))
    p.connect(source, p.add(Negate()), p.add(changed, "changed"))
    record = p.run()
    assert np.array_equal(plain.samples, np.arange(10_000)) and np.array_equal(changed.samples, -plain.samples)
    assert record.stores[0].copies > 0


@pytest.mark.parametrize(
    ("answer", "text"),
    [(ob.WAIT, "changes samples in place returns"), (-1, "returned -1"), (10**6, "its chunk has"), ("x", "returned str")],
)
def test_wrong_results_in_place_are_named(answer, text):
    class Wrong(Negate):
        def step(self, cx, x):
            return answer

    assert text in str(failure_of(Wrong()))


def test_in_place_arrays_end_with_the_step():
    kept = []

    class Holder(Negate):
        def step(self, cx, x):
            kept.append(x)

    assert "is used after the step" in str(failure_of(Holder()))
    kept[0][:] = 3
    assert kept[0].sum() == 3 * len(kept[0])


def test_in_place_is_the_only_port():
    with pytest.raises(TypeError, match="`x`, is the only port"):

        class Two(ob.Operator):
            x: ob.InOut[ob.Real]
            y: ob.Output[ob.Real]

    with pytest.raises(TypeError, match="only samples can be changed in place"):

        class Numbers(ob.Operator):
            x: ob.InOut[int]


def test_fewer_samples_go_on():
    class Half(Negate):
        def step(self, cx, x):
            return len(x) // 2

    found, _ = through(Half(), source=Ramp(count=100, size=50))
    assert found.tolist() == [float(x) for x in [*range(25), *range(50, 75)]]
