"""Receivers of GNU Radio and gr-rds as programs: multiplex_gnuradio.py rds FILE RATE, stereo FILE RATE OUT, encode COUNT, or
loop ORDER BANDWIDTH FILE OUT.

FILE has real samples as 32-bit floats. `encode` prints the bits of groups of the encoder in gr-rds as one line; `rds` prints each group as four blocks in hexadecimal digits; `stereo` writes left and right,
interleaved, at 48 kHz. `loop` turns complex samples back by the phase of their carrier: a PLL for the order 1, else a Costas loop; the
bandwidth is as GNU Radio has it. The chain of `rds` is that of the receiver in gr-rds.
"""

import sys

import pmt
from gnuradio import analog, blocks, digital, filter, gr
from gnuradio.filter import firdes

import rds


class Printer(gr.basic_block):
    """Prints the groups of rds.decoder."""

    def __init__(self):
        gr.basic_block.__init__(self, "printer", None, None)
        self.message_port_register_in(pmt.intern("in"))
        self.set_msg_handler(pmt.intern("in"), self.handle)

    def handle(self, message):
        group = bytes(pmt.u8vector_elements(pmt.cdr(message)))
        print(" ".join(group[at:at + 2].hex().upper() for at in range(0, 8, 2)), flush=True)


def receive(path: str, rate: float) -> None:
    top = gr.top_block()
    factor = int(rate // 25000)
    shift = filter.freq_xlating_fir_filter_fcc(factor, firdes.low_pass(1, rate, 7.5e3, 5e3), 57e3, rate)
    resample = filter.mmse_resampler_cc(0, rate / factor / 19000)
    taps = firdes.root_raised_cosine(1, 19000, 19000 / 8, 1.0, 151)
    matched = filter.fir_filter_ccc(1, [taps[at] - taps[at + 8] for at in range(len(taps) - 8)])
    points = digital.constellation_bpsk().base()
    clock = digital.symbol_sync_cc(digital.TED_ZERO_CROSSING, 16, 0.01, 1.0, 1.0, 0.1, 1, points, digital.IR_MMSE_8TAP, 128, [])
    symbols = digital.constellation_receiver_cb(points, 2 * 3.14159265 / 100, -0.002, 0.002)
    decoder, printer = rds.decoder(False, False), Printer()
    top.connect(blocks.file_source(gr.sizeof_float, path), shift, resample, matched, analog.agc_cc(2e-3, 0.585, 53.0), clock, symbols)
    top.connect((symbols, 0), digital.diff_decoder_bb(2), decoder)
    for port in range(1, 5):
        top.connect((symbols, port), blocks.null_sink(gr.sizeof_float if port < 4 else gr.sizeof_gr_complex))
    top.msg_connect((decoder, "out"), (printer, "in"))
    top.run()


def stereo(path: str, rate: float, out: str) -> None:
    """As analog.wfm_rcv_pll does it after its demodulator; that one has no input for a multiplex."""
    top = gr.top_block()
    source = blocks.file_source(gr.sizeof_float, path)
    audio = firdes.low_pass(1, rate, 17e3, 4e3)
    pilot = firdes.complex_band_pass(10, rate, 18980, 19020, 3000.0)
    loop = analog.pll_refout_cc(0.001, 2 * 3.14159265 * 19020 / rate, 2 * 3.14159265 * 18980 / rate)
    delay = blocks.delay(gr.sizeof_float, (len(pilot) - 1) // 2)
    twice, difference = blocks.multiply_cc(), blocks.multiply_ff()
    factor = int(rate // 48000)
    low = [filter.fir_filter_fff(factor, audio) for _ in range(2)]
    sum_of, difference_of, both = blocks.add_ff(), blocks.sub_ff(), blocks.interleave(gr.sizeof_float)
    top.connect(source, delay, low[0])
    top.connect(source, filter.fir_filter_fcc(1, pilot), loop, (twice, 0))
    top.connect(loop, (twice, 1))
    # The reference is a cosine where the pilot is one; the subcarrier is a sine of twice the pilot's angle.
    top.connect(twice, blocks.complex_to_imag(), blocks.multiply_const_ff(-2), (difference, 0))
    top.connect(delay, (difference, 1))
    top.connect(difference, low[1])
    for at, part in enumerate(low):
        top.connect(part, (sum_of, at))
        top.connect(part, (difference_of, at))
    top.connect(sum_of, (both, 0))
    top.connect(difference_of, (both, 1))
    top.connect(both, blocks.file_sink(gr.sizeof_float, out))
    top.run()


def encode(count: int) -> None:
    top = gr.top_block()
    encoder = rds.encoder(0, 5, True, "ONBEAT 1", 98.0e6, True, False, 13, 3, 146, "Radio text of 36 characters, or so.")
    sink = blocks.vector_sink_b()
    top.connect(encoder, blocks.head(gr.sizeof_char, 104 * count), sink)
    top.run()
    print()
    print("bits", "".join(map(str, sink.data())))


def loop(order: int, bandwidth: float, path: str, out: str) -> None:
    top = gr.top_block()
    kind = analog.pll_carriertracking_cc(bandwidth, 0.05, -0.05) if order == 1 else digital.costas_loop_cc(bandwidth, order)
    top.connect(blocks.file_source(gr.sizeof_gr_complex, path), kind, blocks.file_sink(gr.sizeof_gr_complex, out))
    top.run()


if sys.argv[1] == "loop":
    loop(int(sys.argv[2]), float(sys.argv[3]), *sys.argv[4:6])
elif sys.argv[1] == "encode":
    encode(int(sys.argv[2]))
elif sys.argv[1] == "rds":
    receive(sys.argv[2], float(sys.argv[3]))
else:
    stereo(sys.argv[2], float(sys.argv[3]), sys.argv[4])
