"""The multiplex of FM stations, for tests of the receivers: written from the standards, not from the receivers."""

import numpy
from numpy.random import Generator

OFFSETS = {"A": 0x0FC, "B": 0x198, "C": 0x168, "C'": 0x350, "D": 0x1B4}
SYMBOL_HZ, PILOT_HZ = 1187.5, 19000.0


def block(word: int, offset: str) -> list[int]:
    """The 26 bits of a block: IEC 62106, annex B."""
    rest = word << 10
    for bit in range(25, 9, -1):
        if rest >> bit & 1:
            rest ^= 0b10110111001 << (bit - 10)
    value = word << 10 | rest ^ OFFSETS[offset]
    return [value >> bit & 1 for bit in range(25, -1, -1)]


def group_bits(group: tuple[int, int, int, int]) -> list[int]:
    third = "C'" if group[1] >> 11 & 1 else "C"
    return [bit for word, offset in zip(group, ["A", "B", third, "D"]) for bit in block(word, offset)]


def random_groups(rng: Generator, count: int, programme: int = 0xD392) -> list[tuple[int, int, int, int]]:
    """Groups of one programme, of random types and contents."""
    groups = []
    for second, third, fourth in rng.integers(0, 1 << 16, (count, 3)).tolist():
        groups.append((programme, second, programme if second >> 11 & 1 else third, fourth))
    return groups


def rds(groups: list[tuple[int, int, int, int]], rate: float, ppm: float = 0, begin: int = 0, before: int = 60) -> numpy.ndarray:
    """The subcarrier at 0 Hz with a mean power of 1, beginning within a group, after some random symbols."""
    bits = [bit for group in groups for bit in group_bits(group)][begin:]
    lead = numpy.random.default_rng(3).integers(0, 2, before).tolist()
    level = numpy.cumsum(lead + bits + lead) % 2
    chips = numpy.repeat(2.0 * level - 1, 2)
    chips[1::2] *= -1
    chip_hz = 2 * SYMBOL_HZ * (1 + ppm * 1e-6)
    times = numpy.arange(int(len(chips) * rate / chip_hz)) * (chip_hz / rate)
    nearest, wave = times.astype(int), numpy.zeros(len(times))
    padded = numpy.concatenate([numpy.zeros(8), chips, numpy.zeros(9)])
    for near in range(-8, 9):
        at = times - 0.5 - (nearest + near)
        below = 1 - 16 * at**2
        safe = numpy.where(abs(below) < 1e-9, 1, below)
        pulse = numpy.where(abs(below) < 1e-9, 1, 4 / numpy.pi * numpy.cos(2 * numpy.pi * at) / safe)
        wave += padded[nearest + near + 8] * pulse
    return wave / numpy.sqrt(numpy.mean(wave**2))


def carrier(count: int, rate: float, hertz: float, phase: float = 0) -> numpy.ndarray:
    return numpy.cos(2 * numpy.pi * (hertz / rate * numpy.arange(count) % 1) + phase)


def stereo(left: numpy.ndarray, right: numpy.ndarray, rate: float, ppm: float = 0, phase: float = 0) -> numpy.ndarray:
    """Sum, pilot and difference, for 75 kHz of deviation at 1: ITU-R BS.450. Left and right are up to 1."""
    turns = PILOT_HZ * (1 + ppm * 1e-6) / rate * numpy.arange(len(left)) % 1
    angle = 2 * numpy.pi * turns + phase
    return 0.45 * (left + right) + 0.1 * numpy.sin(angle) + 0.45 * (left - right) * numpy.sin(2 * angle)
