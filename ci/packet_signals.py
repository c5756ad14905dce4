"""Modulators of packets and pages, for tests of the receivers: written from the standards, not from the receivers."""

import numpy
from numpy.random import Generator

RATE = 22050
SYNC, IDLE = 0x7CD215D8, 0x7A89C197
DIGITS = "0123456789*U -]["


def crc(data: bytes) -> int:
    """CRC-16/X.25."""
    register = 0xFFFF
    for byte in data:
        for bit in range(8):
            carry = (register ^ (byte >> bit)) & 1
            register = (register >> 1) ^ (0x8408 if carry else 0)
    return register ^ 0xFFFF


def address(name: str, ssid: int, is_last: bool, mark: bool = False) -> bytes:
    return bytes(ord(letter) << 1 for letter in name.ljust(6)) + bytes([0x60 | mark << 7 | ssid << 1 | is_last])


def frame(rng: Generator) -> bytes:
    """A random UI frame without its check sequence, of printable characters."""
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
    name = lambda: "".join(rng.choice(list(letters), rng.integers(3, 7)))  # noqa: E731
    hops = int(rng.integers(0, 4))
    stations = [(name(), int(rng.integers(0, 16)), False) for _ in range(2)]
    stations += [(name(), int(rng.integers(0, 16)), bool(rng.integers(0, 2))) for _ in range(hops)]
    head = b"".join(address(*station[:2], at == hops + 1, station[2]) for at, station in enumerate(stations))
    info = bytes(rng.integers(0x20, 0x7F, rng.integers(8, 90), dtype="u1"))
    return head + b"\x03\xf0" + b">" + info


def monitor(data: bytes) -> str:
    """Addresses and information as one text, to compare receivers."""
    parts = [data[at:at + 7] for at in range(0, 70, 7)]
    last = next(at for at, part in enumerate(parts) if part[6] & 1)
    names = []
    for part in parts[:last + 1]:
        ssid = part[6] >> 1 & 15
        names.append(bytes(byte >> 1 for byte in part[:6]).decode().rstrip() + (f"-{ssid}" if ssid else ""))
    return " ".join(names) + " " + data[7 * (last + 1) + 2:].decode("latin-1")


def hdlc(data: bytes, before: int = 30, after: int = 4) -> list[int]:
    """The bits of a frame between flags, before NRZI."""
    bits, ones = [], 0
    for byte in data + crc(data).to_bytes(2, "little"):
        for at in range(8):
            bit = byte >> at & 1
            bits.append(bit)
            ones = ones + 1 if bit else 0
            if ones == 5:
                bits.append(0)
                ones = 0
    flag = [0, 1, 1, 1, 1, 1, 1, 0]
    return flag * before + bits + flag * after


def nrzi(bits: list[int], level: int = 1) -> list[int]:
    levels = []
    for bit in bits:
        level ^= 1 - bit
        levels.append(level)
    return levels


def symbols_at(levels: list[int], baud: float, rate: float) -> numpy.ndarray:
    """The level at each sample. Edges are where they are, between samples."""
    count = int(len(levels) * rate / baud)
    edges = numpy.arange(count + 1) * (baud / rate)
    total = numpy.concatenate([[0.0], numpy.cumsum(levels)])
    return numpy.diff(numpy.interp(edges, numpy.arange(len(total)), total)) * (rate / baud)


def afsk(levels: list[int], baud: float = 1200.0, twist_db: float = 0.0, rate: float = RATE) -> numpy.ndarray:
    """Bell 202 with continuous phase; `twist_db` is the gain of 2200 Hz over 1200 Hz. The mean power is 1/2."""
    level = symbols_at(levels, baud, rate)
    hertz = 2200.0 - 1000.0 * level
    phase = 2 * numpy.pi * numpy.cumsum(hertz) / rate
    high = 10 ** (twist_db / 20)
    scale = numpy.sqrt(2 / (1 + high * high))
    return numpy.cos(phase) * scale * (high + (1 - high) * level)


def codeword(value: int) -> int:
    """21 bits with the check bits of BCH (31, 21) and parity."""
    rest = value << 10
    for at in range(30, 9, -1):
        if rest >> at & 1:
            rest ^= 0x769 << (at - 10)
    word = (value << 10 | rest) << 1
    return word | bin(word).count("1") & 1


def reversed_bits(values: list[int], width: int) -> list[int]:
    return [value >> at & 1 for value in values for at in range(width)]


def page(rng: Generator) -> tuple[int, int, str]:
    """A random address, function and message."""
    address, function = int(rng.integers(8, 1 << 21)), int(rng.choice([0, 3]))
    if function == 0:
        length = int(rng.integers(1, 4)) * 5
        text = "".join(rng.choice(list("0123456789U-][ "), length - 1)) + str(rng.integers(0, 10))
    else:
        text = "".join(chr(byte) for byte in rng.integers(0x21, 0x7F, rng.integers(5, 60)))
    return address, function, text


def words_of(address: int, function: int, text: str) -> list[int]:
    """The words of a message, the address first."""
    if function == 0:
        bits = reversed_bits([DIGITS.index(digit) for digit in text], 4)
        fill = reversed_bits([DIGITS.index(" ")], 4) * 5
    else:
        bits = reversed_bits([ord(letter) for letter in text], 7)
        fill = [0] * 20
    bits += fill[:-len(bits) % 20]
    parts = [int("".join(map(str, bits[at:at + 20])), 2) for at in range(0, len(bits), 20)]
    return [codeword(address >> 3 << 2 | function)] + [codeword(1 << 20 | part) for part in parts]


def transmission(pages: list[tuple[int, int, str]]) -> list[int]:
    """The bits of a transmission: 576 bits of preamble, then batches."""
    words: list[int] = []
    for address, function, text in pages:
        while len(words) % 16 // 2 != address & 7 or len(words) % 2:
            words.append(IDLE)
        words += words_of(address, function, text)
    words += [IDLE] * (-len(words) % 16 or 16)
    bits = [1, 0] * 288
    for at in range(0, len(words), 16):
        for word in [SYNC, *words[at:at + 16]]:
            bits += [word >> bit & 1 for bit in range(31, -1, -1)]
    return bits


def pocsag(bits: list[int], baud: float, rate: float = RATE, inverted: bool = False) -> numpy.ndarray:
    """Two-level signal of power 1/2, smoothed as a transmitter does. A 1 is the lower frequency: below 0."""
    level = 1 - 2 * symbols_at(bits, baud, rate)
    width = max(3, int(rate / baud / 4) | 1)
    window = numpy.hanning(width + 2)[1:-1]
    smooth = numpy.convolve(level, window / window.sum(), "same") * numpy.sqrt(0.5)
    return -smooth if inverted else smooth
