"""Frames of aircraft, read by us and by pyModeS: positions all over the globe, altitudes in both codes, random bits of every kind.

`ONBEAT_GLOBE` is the step in degrees (5, and 0.5 for every half degree).
"""

import json
import math
import os
import pathlib
import subprocess
import sys

import numpy
import pyModeS
from pyModeS.position._cpr import airborne_position_pair, cprNL, surface_position_pair

GENERATOR = 0xFFF409


def parities(frames: numpy.ndarray) -> numpy.ndarray:
    """The frames, of bits, with their parity."""
    rest = numpy.zeros(len(frames), "u4")
    for column in frames.T:
        top = (rest >> 23 & 1) ^ column
        rest = (rest << 1 & 0xFFFFFF) ^ numpy.where(top, GENERATOR, 0).astype("u4")
    return rest


def with_parity(frames: numpy.ndarray, addresses: "numpy.ndarray | int" = 0) -> numpy.ndarray:
    rest = parities(frames) ^ addresses
    return numpy.hstack([frames, rest[:, None] >> numpy.arange(23, -1, -1) & 1]).astype("u1")


def bits_of(numbers, count: int) -> numpy.ndarray:
    return (numpy.asarray(numbers, "i8")[:, None] >> numpy.arange(count - 1, -1, -1) & 1).astype("u1")


def squitters(payloads: numpy.ndarray, addresses) -> numpy.ndarray:
    """DF 17 with these 56 bits."""
    count = len(payloads)
    return with_parity(numpy.hstack([bits_of([17] * count, 5), bits_of([5] * count, 3), bits_of(addresses, 24), payloads]))


def write_air(path: pathlib.Path, frames: list, gap: int = 40) -> None:
    """Magnitudes at 2 MS/s."""
    preamble = numpy.full(16, 0.01, "<f4")
    preamble[[0, 2, 7, 9]] = 0.5
    with open(path, "wb") as file:
        file.write(numpy.full(500, 0.01, "<f4").tobytes())
        for some in frames:
            pulses = numpy.where(some[:, :, None] == numpy.array([1, 0]), 0.5, 0.01).reshape(len(some), -1).astype("<f4")
            whole = numpy.hstack([numpy.tile(preamble, (len(some), 1)), pulses, numpy.full((len(some), gap), 0.01, "<f4")])
            file.write(whole.astype("<f4").tobytes())
        file.write(numpy.full(500, 0.01, "<f4").tobytes())


def decode(command: pathlib.Path, folder: pathlib.Path, frames: list, more: str = "") -> list:
    write_air(folder / "air.f32", frames)
    (folder / "air.toml").write_text(f'''
name = "air"
operator = [
    {{ name = "in", kind = "iq.source.real", path = "air.f32", format = "rf32_le", sample_rate = "2 MHz" }},
    {{ name = "find", kind = "mode_s.demod", remember = "1000 s" }},
    {{ name = "say", kind = "mode_s.decode"{more} }},
    {{ name = "out", kind = "text.sink", path = "air.txt" }},
]
edge = [{{ from = "in", to = "find" }}, {{ from = "find", to = "say" }}, {{ from = "say", to = "out" }}]
''')
    arguments = [command, "run", folder / "air.toml", "--pace", "fast", "--quiet", "--set", f"output={folder}"]
    subprocess.run(arguments, check=True, timeout=300)
    return [json.loads(line) for line in open(folder / "air.txt")]


def encoded(latitude: float, longitude: float, odd: int, circle: float) -> tuple:
    """The place within its zone."""
    height = circle / (60 - odd)
    y = math.floor(2**17 * (latitude % height) / height + 0.5)
    rounded = height * (y / 2**17 + math.floor(latitude / height))
    width = circle / max(cprNL(rounded) - odd, 1)
    return y % 2**17, math.floor(2**17 * (longitude % width) / width + 0.5) % 2**17


def positions(command: pathlib.Path, folder: pathlib.Path) -> int:
    """Every place of a grid over the globe, from both parities; and on the ground near a receiver."""
    step, compared = float(os.environ.get("ONBEAT_GLOBE", "5")), 0
    borders = [-87.0, -86.535369975121, 10.47047130, -10.47047130, 86.535369975121, 87.0, 0.0]
    latitudes = [*numpy.arange(-90, 90.01, step), *borders]
    for kind, circle, receiver in ((11, 360, None), (20, 360, None), (7, 90, (52.3, 4.8)), (7, 90, (-33.9, 151.2)), (7, 90, (0.2, -179.8))):
        if receiver:
            latitudes = [receiver[0] + offset for offset in numpy.arange(-0.7, 0.71, 0.1)]
            longitudes = [receiver[1] + offset for offset in numpy.arange(-0.7, 0.71, 0.1)]
        else:
            longitudes = list(numpy.arange(-180, 180, step))
        for begin in range(0, len(latitudes), 20):
            places = [(la, lo) for la in latitudes[begin:begin + 20] for lo in longitudes]
            order = [number % 2 for number in range(len(places))]
            codes = [[encoded(la, lo, odd, circle) for odd in (0, 1)] for la, lo in places]
            payloads, addresses = [], []
            for number, (first, code) in enumerate(zip(order, codes)):
                for odd in (first, 1 - first):
                    payloads.append([odd, *code[odd]])
                    addresses.append(0x400000 + number)
            payloads = numpy.array(payloads)
            count = len(payloads)
            frames = numpy.hstack([
                bits_of([kind] * count, 5), bits_of([0b000100001110] * count, 16), bits_of(payloads[:, 0], 1),
                bits_of(payloads[:, 1], 17), bits_of(payloads[:, 2], 17),
            ])
            more = f", latitude = {receiver[0]}, longitude = {receiver[1]}" if receiver else ""
            lines = decode(command, folder, [squitters(frames, addresses)], more)
            found = {int(line["address"], 16) - 0x400000: line for line in lines if "latitude_deg" in line}
            for number, (place, first, code) in enumerate(zip(places, order, codes)):
                newer = first == 1
                if receiver:
                    expected = surface_position_pair(*code[0], *code[1], lat_ref=receiver[0], lon_ref=receiver[1], even_is_newer=newer)
                else:
                    expected = airborne_position_pair(*code[0], *code[1], even_is_newer=newer)
                ours = found.get(number)
                if (ours is None) != (expected is None):
                    sys.exit(f"mode_s: kind {kind} at {place}: {ours} for {expected}")
                if expected:
                    apart = abs((ours["longitude_deg"] - expected[1] + 180) % 360 - 180)
                    if abs(ours["latitude_deg"] - expected[0]) > 1e-5 or apart > 1e-5:
                        sys.exit(f"mode_s: kind {kind} at {place}: {ours} for {expected}")
                compared += 1
    return compared


# Our name, pyModeS's name, how to convert theirs.
FIELDS = [
    ("call_sign", "callsign", lambda text: text.strip() or None if text and "#" not in text else None),
    ("altitude_ft", "altitude", None),
    ("squawk", "squawk", None),
    ("ground_speed_kt", "groundspeed", None),
    ("track_deg", "track", None),
    ("heading_deg", "heading", None),
    ("air_speed_kt", "airspeed", None),
    ("vertical_rate_ft_per_min", "vertical_rate", None),
    ("satellite_minus_barometer_ft", "geo_minus_baro", None),
    ("cpr_latitude", "cpr_lat", None),
    ("cpr_longitude", "cpr_lon", None),
    ("selected_altitude_ft", "selected_altitude", None),
    ("selected_heading_deg", "selected_heading", None),
    ("barometer_setting_hpa", "baro_pressure_setting", None),
    ("position_accuracy", "nac_p", None),
    ("integrity_level", "sil", None),
    ("version", "version", None),
]


def compare(line: dict) -> None:
    theirs = pyModeS.decode(line["hex"].upper())
    kind = theirs.get("typecode")
    if kind == 29 and theirs["subtype"] != 1:
        return  # of an older standard, whose bits mean something else
    known = FIELDS if line["df"] < 20 else [field for field in FIELDS if field[0] in ("altitude_ft", "squawk")]
    for ours, name, convert in known:
        if name not in theirs and ours not in line:
            continue
        expected = theirs.get(name)
        expected = convert(expected) if convert and expected is not None else expected
        if name == "altitude" and kind in (20, 21, 22):
            metres = line.get("altitude_m")
            expected = None if expected is None else expected
            if metres is not None and abs(metres * 3.28084 - (expected or 0)) > 1.5:
                sys.exit(f"mode_s: {line}: altitude {metres} m for {theirs}")
            continue
        if kind == 31 and theirs.get("version") == 0 and name in ("nac_p", "sil"):
            continue  # not in this version of the standard
        found = line.get(ours)
        if kind == 19 and theirs.get("subtype") not in (1, 2, 3, 4):
            continue
        close = found == expected
        if isinstance(found, (int, float)) and isinstance(expected, (int, float)):
            most = {"ground_speed_kt": 1, "track_deg": 0.0051, "heading_deg": 0.0051, "selected_heading_deg": 0.0051, "barometer_setting_hpa": 0.051}
            close = abs(found - expected) <= most.get(ours, 0) or ours == "track_deg" and abs(abs(found - expected) - 360) <= 0.0051
        if not close:
            sys.exit(f"mode_s: {line['hex']}: {ours} is {found}, and {name} is {expected}: {line} {theirs}")


def fields(command: pathlib.Path, folder: pathlib.Path, rng: numpy.random.Generator) -> int:
    """Every altitude code of 12 and of 13 bits, and random bits of all kinds of frames."""
    address = 0x4840D6
    codes = numpy.arange(1 << 12)
    altitudes = numpy.hstack([bits_of([11] * 4096, 5), bits_of([0] * 4096, 3), bits_of(codes, 12), bits_of(codes * 7919, 36)])
    every = [squitters(altitudes, [address] * 4096)]
    codes = numpy.arange(1 << 13)
    for form in (0, 4, 5):
        replies = numpy.hstack([bits_of([form] * 8192, 5), bits_of(codes, 3), bits_of(codes * 31, 11), bits_of(codes, 13)])
        every.append(with_parity(replies, address))
    replies = numpy.hstack([bits_of(rng.integers(20, 22, 500), 5), rng.integers(0, 2, (500, 83), dtype="u1")])
    every.append(with_parity(replies, address))
    payloads = rng.integers(0, 2, (6000, 56), dtype="u1")
    every.append(squitters(payloads, [address] * 6000))
    letters = numpy.array([*range(1, 27), 32, *range(48, 58)])
    names = numpy.hstack([bits_of(rng.integers(1, 5, 300), 5), bits_of(rng.integers(0, 8, 300), 3)] + [bits_of(rng.choice(letters, 300), 6) for _ in range(8)])
    every.append(squitters(names, [address] * 300))
    lines = decode(command, folder, every)
    sent = sum(len(some) for some in every)
    # Some random replies look like others at another place.
    if len(lines) < 0.97 * sent:
        sys.exit(f"mode_s: {len(lines)} of {sent} frames were found")
    for line in lines:
        compare(line)
    return len(lines)


def check(command: pathlib.Path, folder: pathlib.Path) -> None:
    places = positions(command, folder)
    lines = fields(command, folder, numpy.random.default_rng(5))
    print(f"mode_s: {places} positions and {lines} frames are as pyModeS {pyModeS.__version__ if hasattr(pyModeS, '__version__') else ''} has them")
