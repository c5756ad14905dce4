"""Pipelines: files and back, errors, runs."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import onbeat as ob

ROOT = Path(os.environ.get("ONBEAT_ROOT") or Path(__file__).resolve().parents[3])
FM = ROOT / "examples" / "fm_receiver.toml"


class Endless(ob.Operator):
    out: ob.Output[ob.Real]

    def step(self, cx, out):
        out[:] = 1


class Square(ob.Operator):
    x: ob.Input[ob.Real]
    y: ob.Output[ob.Real]

    def step(self, cx, x, y):
        np.multiply(x, x, out=y)


def endless():
    p = ob.Pipeline("endless")
    p.connect(p.add(Endless()), p.add("null.sink", "end"))
    return p


def test_a_file_runs_as_the_command_runs_it(tmp_path):
    p = ob.Pipeline.from_toml(FM, set={"output": str(tmp_path / "a")})
    record = p.run(pace="fast")
    assert record.result.outcome == "ended" and record.paths["iq -> audio"].misses == 0
    call = [sys.executable, "-m", "onbeat", "run", str(FM), "--pace", "fast", "--quiet", "--set", f"output={tmp_path / 'b'}"]
    subprocess.run(call, check=True, capture_output=True)
    assert (tmp_path / "a" / "fm.wav").read_bytes() == (tmp_path / "b" / "fm.wav").read_bytes()


def test_a_file_comes_back_as_it_was(tmp_path):
    for file in sorted((ROOT / "examples").glob("*.toml")):
        first = ob.load(file)
        copy = tmp_path / file.name
        copy.write_text(first.to_toml())
        second = ob.load(copy)
        second._folder = first._folder
        assert second._table([]) == first._table([])
        try:
            first.check()
        except ob.PipelineError as error:
            # For a machine with more cores.
            assert "there is no core" in str(error)
            continue
        assert first.plan().data["operators"] == second.plan().data["operators"], file


def test_the_receiver_in_python_makes_the_same_bytes(tmp_path):
    p = ob.load(FM)
    p.options["output"] = str(tmp_path / "file")
    p.run(pace="fast")
    p = ob.Pipeline("fm", output=str(tmp_path / "python"))
    chain = [p.add(node.kind, node.name, **{k: v for k, v in node._table.items() if k not in ("name", "kind")}) for node in ob.load(FM)._operators]
    p._folder = str(FM.parent)
    p.connect(*chain)
    p.run(pace="fast")
    assert (tmp_path / "file" / "fm.wav").read_bytes() == (tmp_path / "python" / "fm.wav").read_bytes()


def test_an_aircraft_receiver_has_a_source_in_python(tmp_path):
    class Capture(ob.Operator):
        out: ob.Output[ob.Complex]
        path: ob.Param[str]
        rate_hz = 2e6

        def start(self, cx):
            bytes_ = np.fromfile(self.path, np.uint8).astype(np.float32)
            self.samples, self.at = ((bytes_ - np.float32(127.5)) / np.float32(127.5)).view(np.complex64), 0

        def step(self, cx, out):
            made = min(len(out), len(self.samples) - self.at)
            out[:made] = self.samples[self.at : self.at + made]
            self.at += made
            return made or ob.DONE

    capture = str(ROOT / "examples" / "adsb.cu8")

    def frames(folder, source):
        p = ob.Pipeline("adsb", output=str(tmp_path / folder))
        kinds = [p.add(kind) for kind in ("magnitude", "mode_s.demod", "mode_s.decode")]
        p.connect(p.add(*source[0], **source[1]), *kinds, p.add("text.sink", path="lines"))
        p.run(pace="fast")
        return (tmp_path / folder / "lines").read_text()

    built_in = frames("rust", (("iq.source",), {"path": capture, "format": "cu8", "sample_rate": "2 MS/s"}))
    assert frames("python", ((Capture(path=capture),), {})) == built_in and built_in.count("\n") > 3


def test_operators_in_files(tmp_path):
    (tmp_path / "mine.py").write_text(
        textwrap.dedent("""
        import numpy as np, onbeat

        class Loud(onbeat.Operator):
            x: onbeat.Input[onbeat.Real]
            y: onbeat.Output[onbeat.Real]
            gain: onbeat.Param[float] = onbeat.param(2.0)

            def step(self, cx, x, y):
                np.multiply(x, self.gain, out=y)
        """)
    )
    text = """
    name = "mine"
    [[operator]]
    name = "source"
    kind = "null.source"
    count = 10
    [[operator]]
    name = "loud"
    kind = "python"
    file = "mine.py"
    class = "Loud"
    gain = 3.0
    deadline = "1 s"
    [[operator]]
    name = "end"
    kind = "null.sink"
    [[edge]]
    from = "source.out"
    to = "loud.x"
    [[edge]]
    from = "loud.y"
    to = "end.in"
    """
    file = tmp_path / "mine.toml"
    file.write_text(textwrap.dedent(text))
    record = ob.load(file).run()
    assert record.operators["loud"].deadline_ns == 1_000_000_000
    done = subprocess.run([sys.executable, "-m", "onbeat", "run", str(file), "--set", f"output={tmp_path}"], capture_output=True, text=True)
    assert done.returncode == 0 and "loud" in done.stdout, done.stderr
    for change, error in [
        ("Loud", None),
        ("Quiet", "there is no `Quiet` in"),
        ("Loud.step", "it is not an operator"),
    ]:
        done = subprocess.run([sys.executable, "-m", "onbeat", "check", str(file), "--set", f"loud.class={change}"], capture_output=True, text=True)
        assert (done.returncode == 0) == (error is None) and (error or "ok") in done.stdout + done.stderr
    done = subprocess.run([sys.executable, "-m", "onbeat", "check", str(file), "--set", "loud.volume=3"], capture_output=True, text=True)
    assert done.returncode == 1 and "Loud has no parameter `volume`: it has gain" in done.stderr


def test_an_instance_is_written_with_its_file(tmp_path):
    p = ob.Pipeline("square")
    p.connect(p.add("null.source", "source", count=3), p.add(Square()), p.add("null.sink", "end"))
    file = tmp_path / "square.toml"
    file.write_text(p.to_toml())
    assert ob.load(file).run().edges["Square.y -> end.in"].received == 3

    class Local(Square):
        pass

    p = ob.Pipeline("local")
    p.add(Local())
    with pytest.raises(ob.PipelineError, match="is in no file"):
        p.to_toml()


def test_errors_name_place_and_hint(tmp_path):
    file = tmp_path / "wrong.toml"
    file.write_text('[[operator]]\nname = "iq"\nkind = "sigmf.sauce"\n')
    with pytest.raises(ob.PipelineError) as caught:
        ob.load(file).check()
    assert (caught.value.line, caught.value.file) == (3, str(file))
    assert "did you mean `sigmf.source`" in str(caught.value)
    with pytest.raises(ob.PipelineError, match="cannot be read"):
        ob.load(tmp_path / "nothing.toml")
    p = ob.Pipeline("types")
    p.connect(p.add(Square()), p.add("text.sink", "end"))
    with pytest.raises(ob.PipelineError) as caught:
        p.check()
    assert caught.value.file is None
    with pytest.raises(ob.PipelineError, match="another pipeline"):
        ob.Pipeline("other").connect(p["end"], "x")
    with pytest.raises(KeyError, match="there is no operator 'start'"):
        p["start"]


def test_a_run_can_be_stopped_paused_and_asked():
    with endless().start() as run:
        run.pause()
        run.resume()
        assert run.status.operators[0].name == "Endless"
        assert not run.is_finished
        with pytest.raises(TimeoutError):
            run.wait(timeout_s=0.2)
    assert run.result.result.outcome == "stopped"
    assert run.is_finished and run.wait() is run.result


def test_an_exception_in_the_block_stops_the_run():
    with pytest.raises(ZeroDivisionError), endless().start() as run:
        1 / 0
    assert run.is_finished


def test_a_run_that_nobody_holds_ends():
    run = endless().start()
    inner = run._inner
    del run
    handle = inner
    assert handle.wait(0.0) is None
    before = threading.active_count()
    del handle, inner
    assert threading.active_count() == before


def test_async():
    async def go():
        async with endless().start() as run:
            await asyncio.sleep(0.05)
        return run.result

    assert asyncio.run(go()).result.outcome == "stopped"


def test_ctrl_c_stops_cleanly_and_finishes_files(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(f"""
        import onbeat as ob, numpy as np
        p = ob.Pipeline("long", output={str(tmp_path)!r})
        p.connect(p.add("null.source", "s", rate=48000, pace="real", size=480), p.add("wav.sink", path="out.wav"))
        try:
            print("ready", flush=True)
            p.run()
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        """)
    )
    process = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=60)[0] == "interrupted\n"
    import wave

    with wave.open(str(tmp_path / "out.wav")) as wav:
        assert wav.getnframes() > 0


def test_fork_and_pickle_are_refused():
    p = endless()
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(p)
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(Square())
    with p.start() as run:
        with pytest.raises(TypeError, match="cannot be pickled"):
            pickle.dumps(run)
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                run.stop()
                text = "nothing"
            except RuntimeError as error:
                text = str(error)
            os.write(writer, text.encode())
            os._exit(0)
        os.waitpid(child, 0)
        assert "this run is of another process" in os.read(reader, 1000).decode()


def test_misses_are_explained():
    class Late(Square):
        def step(self, cx, x, y):
            y[:] = x
            if cx.sequence % 50 == 20:
                end = time.perf_counter() + 0.02
                while time.perf_counter() < end:
                    pass

    p = ob.Pipeline("late", duration="1 s")
    p.connect(p.add("null.source", "s", rate=48_000, pace="real", size=480), p.add(Late()), p.add("null.sink", "end"))
    p.path("s", "end", max_latency="5 ms")
    with p.start() as run:
        first = next(run.misses())
        assert "Late" in first.sentence and first.late_ns > 0
        assert first.causes[0]["class"] == "own_compute"
        run.wait()
    record = run.result
    assert record.misses and record.causes[0]["class"] == "own_compute"
    assert record.paths["s -> end"].misses == len(record.misses)


def test_records(tmp_path):
    p = ob.Pipeline("record")
    p.connect(p.add("null.source", "source", count=100), p.add(Square()), p.add("null.sink", "end"))
    record = p.run()
    assert record.paths[0].p99_ms > 0 and record.paths["source → end"].p99_ms == record.paths[0].p99_ns / 1e6
    assert "<html" in record.to_html(tmp_path / "page.html") and (tmp_path / "page.html").exists()
    record.save(tmp_path / "r.json")
    assert ob.Record.read(tmp_path / "r.json").data == record.data
    with pytest.raises(AttributeError, match="a record has no 'speed'"):
        record.speed
    with pytest.raises(KeyError, match="there are source -> end"):
        record.paths["a -> b"]
    assert "<iframe" in record._repr_html_() and "<svg" in p._repr_html_()
    pandas = pytest.importorskip("pandas")
    frame = record.to_pandas()
    assert isinstance(frame, pandas.DataFrame) and frame.loc["Square", "steps"] >= 100


def test_strict_settings_that_are_refused_are_errors():
    p = ob.Pipeline("strict", strict=True, cores=[0, 5000])
    p.connect(p.add(Endless()), p.add("null.sink"))
    with pytest.raises(ob.PipelineError, match="5000"):
        p.run()


def test_kinds_are_listed():
    kinds = ob.kinds()
    assert kinds["fir.decimate"].inputs[0]["name"] == "in" and "python" in kinds


def test_many_graphs_leave_no_memory():
    def rss_kb():
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4

    def once():
        p = ob.Pipeline("memory")
        p.connect(p.add("null.source", "source", count=3), p.add(Square()), p.add("null.sink", "end"))
        p.run(explain="off")

    for _ in range(200):
        once()
    before = rss_kb()
    for _ in range(1_000):
        once()
    assert rss_kb() - before < 20_000


def test_eight_operators_start_and_stop_with_the_collector_on():
    import gc

    threshold = gc.get_threshold()
    gc.set_threshold(5)
    try:
        for number in range(100):
            p = ob.Pipeline("eight", scheduler="pinned", workers=2)
            p.connect(p.add("null.source", "source", count=5), *[p.add(Square()) for _ in range(8)], p.add("null.sink", "end"))
            assert p.run(explain="off").edges["source.out -> Square.x"].received == 5, number
    finally:
        gc.set_threshold(*threshold)


def test_the_start_method_spawn_works():
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        assert pool.apply(_in_another_process) == 3


def _in_another_process():
    p = ob.Pipeline("child")
    p.connect(p.add("null.source", "source", count=3), p.add(Square()), p.add("null.sink", "end"))
    return p.run().edges["Square.y -> end.in"].received


def test_notes_and_refused_settings_are_logged(caplog):
    class Noting(Square):
        def step(self, cx, x, y):
            cx.note("a remark")
            y[:] = x

    caplog.set_level("INFO", "onbeat")
    p = ob.Pipeline("logged", huge_pages=True, numa=True)
    p.connect(p.add("null.source", "source", count=3), p.add(Noting()), p.add("null.sink"))
    with p.start() as run:
        refused = [setting.what for setting in run.obtained if setting.asked != setting.obtained]
        run.wait()
    texts = [(record.levelname, record.getMessage()) for record in caplog.records]
    assert any(level == "INFO" and "a remark" in text for level, text in texts)
    warned = [text for level, text in texts if level == "WARNING"]
    assert len(warned) == len(refused) and all(what in text for what, text in zip(refused, warned))


def test_progress_needs_rich_and_says_so(caplog, monkeypatch):
    import sys

    p = ob.Pipeline("shown", duration="0.6 s")
    p.connect(p.add("null.source", "source", rate=48_000, pace="real"), p.add("null.sink"))
    assert p.run(progress=True).result.outcome
    monkeypatch.setitem(sys.modules, "rich.progress", None)
    assert p.run(progress=True).result.outcome
    assert "pip install rich" in caplog.text
