"""An operator in Python on chunks of 16 KiB: in GNU Radio, in onbeat, and as a bare loop, in turn.

    python3 sync_block.py [--rounds N] [--chunks N]

The interpreter must be able to import GNU Radio's package and onbeat's, e.g. Debian's, in an environment that sees its packages:

    apt-get install gnuradio python3-venv
    /usr/bin/python3 -m venv --system-site-packages both
    both/bin/pip install .
    both/bin/python peers/gnuradio/sync_block.py

Each side multiplies 4096 samples (float32) per call with NumPy, between a source and a sink in C++ or Rust that do nothing. The
result is the time per chunk: medians of all rounds, with the lowest and the highest.
"""

import argparse
import json
import os
import statistics
import time

import numpy as np
import onbeat
from gnuradio import blocks, gr

SAMPLES = 4096
GAIN = np.float32(0.5)


class Gain(onbeat.Operator):
    x: onbeat.Input[onbeat.Real]
    y: onbeat.Output[onbeat.Real]

    def step(self, cx, x, y):
        np.multiply(x, GAIN, out=y)


class GainBlock(gr.sync_block):
    def __init__(self):
        gr.sync_block.__init__(self, "gain", in_sig=[np.float32], out_sig=[np.float32])
        self.set_output_multiple(SAMPLES)
        self.set_max_noutput_items(SAMPLES)
        self.calls = 0

    def work(self, input_items, output_items):
        self.calls += 1
        np.multiply(input_items[0], GAIN, out=output_items[0])
        return len(output_items[0])


def timed(run):
    """Seconds of a run, with its start and stop."""
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


def gnuradio(chunks):
    flow = gr.top_block()
    gain = GainBlock()
    flow.connect(blocks.null_source(4), blocks.head(4, chunks * SAMPLES), gain, blocks.null_sink(4))
    seconds = timed(flow.run)
    assert gain.calls == chunks, (gain.calls, chunks)
    return seconds


def ours(how):
    def run(chunks):
        p = onbeat.Pipeline("gain", **how)
        source = p.add("null.source", "source", size=SAMPLES, count=chunks)
        p.connect(source, p.add(Gain()), p.add("null.sink", "end"))
        return timed(p.run)

    return run


def bare(chunks):
    x, y = np.zeros(SAMPLES, np.float32), np.zeros(SAMPLES, np.float32)

    def loop():
        for _ in range(chunks):
            np.multiply(x, GAIN, out=y)

    return timed(loop)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--chunks", type=int, default=50_000)
    wanted = parser.parse_args()
    sides = {
        "bare loop": bare,
        "onbeat greedy": ours({"scheduler": "greedy"}),
        "onbeat event": ours({"scheduler": "event", "workers": len(os.sched_getaffinity(0))}),
        f"GNU Radio {gr.version()}": gnuradio,
    }
    taken = {name: [] for name in sides}
    for run in sides.values():
        run(wanted.chunks // 10)
    for _ in range(wanted.rounds):
        for name, run in sides.items():
            taken[name].append(run(wanted.chunks) / wanted.chunks * 1e6)
    for name, each in taken.items():
        figures = {"side": name, "us_per_chunk": round(statistics.median(each), 3)}
        print(json.dumps(figures | {"min": round(min(each), 3), "max": round(max(each), 3)}))


if __name__ == "__main__":
    main()
