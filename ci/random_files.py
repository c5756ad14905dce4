"""Random files of each format, read by us and by the independent program, whole and damaged.

`ONBEAT_FILES` is their number per format (100). WAV is judged by libsndfile, NPY by NumPy, SigMF by its own package and, where
that has no reader, by NumPy and the text of the specification.
"""

import io
import json
import os
import pathlib
import struct
import subprocess
import sys

import numpy
import sigmf
import soundfile

BATCH = 25
SUBTYPES = ["PCM_U8", "PCM_16", "PCM_24", "PCM_32", "FLOAT", "DOUBLE", "ULAW", "ALAW"]
ARRAYS = ["f2", "f4", "f8", "u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "?", "c8", "c16"]
NUMBERS = ["u8", "u16", "u32", "i8", "i16", "i32", "f32", "f64"]


class Case:
    """A file, the source that plays it, and the samples that somebody else finds in it."""

    def __init__(self, path: pathlib.Path, source: str, expected: numpy.ndarray, is_complex: bool = False):
        self.path, self.source, self.expected, self.is_complex = path, source, expected, is_complex


def numbers(rng: numpy.random.Generator, dtype: numpy.dtype, count: int) -> numpy.ndarray:
    """Samples of all sizes, as this type has them."""
    if dtype.kind == "b":
        return rng.integers(0, 2, count).astype(dtype)
    if dtype.kind in "iu":
        limits = numpy.iinfo(dtype)
        return rng.integers(limits.min, limits.max, count, dtype=dtype.newbyteorder("="), endpoint=True).astype(dtype)
    found = rng.uniform(-1, 1, count) * 10.0 ** rng.integers(-4, 1, count)
    return (found + 1j * rng.uniform(-1, 1, count) if dtype.kind == "c" else found).astype(dtype)


def wav(rng: numpy.random.Generator, path: pathlib.Path) -> Case:
    """Of any width, container and byte order, with other chunks, and lengths as recorders leave them."""
    channels, frames = int(rng.integers(1, 5)), int(rng.integers(1, 4000))
    samples = rng.uniform(-1, 1, (frames, channels))
    container = str(rng.choice(["WAV", "WAVEX", "RF64"]))
    endian = "BIG" if container == "WAV" and rng.random() < 0.3 else "FILE"
    subtype = str(rng.choice(SUBTYPES))
    file = io.BytesIO()
    soundfile.write(file, samples, int(rng.integers(1, 200_000)), subtype, endian, container)
    data = bytearray(file.getvalue())
    begin = data.index(b"data")
    if container != "RF64":
        lengths = [None, None, 0xFFFFFFFF, 0] if endian == "FILE" and begin + 8 + samples.size < len(data) + 1 else [None]
        length = rng.choice(numpy.array(lengths, dtype=object))
        # Only if nothing follows the samples: they are taken to the end of the file.
        size = struct.unpack("<I", data[begin + 4:begin + 8])[0]
        if length is not None and begin + 8 + size == len(data):
            data[begin + 4:begin + 8] = struct.pack("<I", length)
        odd = bytes(rng.integers(0, 256, int(rng.integers(0, 50)), dtype="u1"))
        order = ">I" if endian == "BIG" else "<I"
        data[begin:begin] = b"junk" + struct.pack(order, len(odd)) + odd + b"\0" * (len(odd) % 2)
    path.write_bytes(data)
    channel = int(rng.integers(0, channels))
    try:
        expected = soundfile.read(path, dtype="float32", always_2d=True)[0][:, channel]
    except soundfile.LibsndfileError:
        expected = samples[:, channel]
    if len(expected) == 0:
        # It takes a length of 0 by its word.
        plain = io.BytesIO(file.getvalue())
        expected = soundfile.read(plain, dtype="float32", always_2d=True)[0][:, channel]
    return Case(path, f'kind = "wav.source"\nchannel = {channel}', expected)


def npy(rng: numpy.random.Generator, path: pathlib.Path) -> Case:
    """Of any type, order and version, with one to four axes."""
    dtype = numpy.dtype(str(rng.choice(["<", ">"])) + str(rng.choice(ARRAYS)))
    shape = tuple(int(axis) for axis in rng.integers(1, 9, int(rng.integers(1, 5))))
    array = numbers(rng, dtype, int(numpy.prod(shape))).reshape(shape, order="C")
    array = numpy.asarray(array, order=str(rng.choice(["C", "F"])))
    with open(path, "wb") as file:
        numpy.lib.format.write_array(file, array, version=[(1, 0), (2, 0), (3, 0)][int(rng.integers(0, 3))])
    is_complex = dtype.kind == "c"
    with numpy.errstate(over="ignore"):
        expected = numpy.load(path).astype("<c8" if is_complex else "<f4").reshape(-1)
    kind = "npy.source.complex" if is_complex else "npy.source"
    return Case(path, f'kind = "{kind}"', expected, is_complex)


def recording(rng: numpy.random.Generator, path: pathlib.Path) -> Case:
    """Of any datatype, with headers before its captures, an offset, bytes at the end, or another name of its data."""
    kind = str(rng.choice(["c", "r"]))
    number = str(rng.choice(NUMBERS))
    order = "" if number.endswith("8") else str(rng.choice(["_le", "_be"]))
    bits = int(number[1:])
    dtype = numpy.dtype(("" if not order else {"_le": "<", "_be": ">"}[order]) + number[0] + str(bits // 8))
    parts, count = (2 if kind == "c" else 1), int(rng.integers(2, 3000))
    stored = numbers(rng, dtype, count * parts)
    first = int(rng.choice([0, 0, 1000]))
    starts = sorted({0, *(int(at) for at in rng.integers(0, count, 2))})
    is_plain = rng.random() < 0.4
    headers = [0 if is_plain else int(rng.integers(0, 20)) for _ in starts]
    trailing = 0 if is_plain else int(rng.integers(0, 30))
    cuts = [*starts, count]
    data = b"".join(
        bytes(header) + stored[begin * parts:end * parts].tobytes() for header, begin, end in zip(headers, cuts, cuts[1:])
    ) + bytes(trailing)
    info = {"core:version": "1.2.0", "core:datatype": kind + number + order, "core:sample_rate": 48000}
    name = path.name + ".sigmf-data"
    if not is_plain:
        name = path.name + ".bin"
        info |= {"core:dataset": name, "core:offset": first, "core:trailing_bytes": trailing}
    captures = [
        {"core:sample_start": start + (0 if is_plain else first)} | ({} if is_plain else {"core:header_bytes": header})
        for start, header in zip(starts, headers)
    ]
    path.with_name(name).write_bytes(data)
    meta = path.with_name(path.name + ".sigmf-meta")
    meta.write_text(json.dumps({"global": info, "captures": captures, "annotations": []}))
    if number[0] == "f":
        expected = stored.astype("<f8")
    else:
        full = 2.0 ** (bits - 1)
        zero = {"i": 0, "u": full}[number[0]]
        zero, full = (127.5, 127.5) if number == "u8" else (zero, full)
        expected = (stored.astype("<f8") - zero) / full
    expected = expected.astype("<f4").view("<c8" if kind == "c" else "<f4")
    if is_plain and number != "u8":
        theirs = sigmf.sigmffile.fromfile(str(meta)).read_samples()
        assert numpy.allclose(theirs, expected, atol=1e-6), (info, theirs[:4], expected[:4])
    source = "sigmf.source" if kind == "c" else "sigmf.source.real"
    return Case(meta, f'kind = "{source}"', expected, kind == "c")


def text_of(cases: list) -> str:
    """A pipeline that plays all of them, each into a file."""
    text = 'name = "random"\noutput = "."\n[defaults]\nquantum = "64 KiB"\n'
    for number, case in enumerate(cases):
        sink = "file.sink.complex" if case.is_complex else "file.sink"
        text += f'[[operator]]\nname = "in{number}"\npath = "{case.path}"\n{case.source}\n'
        text += f'[[operator]]\nname = "out{number}"\nkind = "{sink}"\npath = "{number}.out"\n'
        text += f'[[edge]]\nfrom = "in{number}"\nto = "out{number}"\n'
    return text


def play(command: pathlib.Path, folder: pathlib.Path, cases: list) -> subprocess.CompletedProcess:
    for old in folder.glob("*.out"):
        old.unlink()
    (folder / "random.toml").write_text(text_of(cases))
    arguments = [command, "run", folder / "random.toml", "--pace", "fast", "--set", f"output={folder}"]
    return subprocess.run(arguments, capture_output=True, text=True, errors="replace", timeout=60)


def found(folder: pathlib.Path, number: int, case: Case) -> numpy.ndarray:
    path = folder / f"{number}.out"
    return numpy.fromfile(path, "<c8" if case.is_complex else "<f4") if path.exists() else numpy.array([])


def is_equal(one: numpy.ndarray, other: numpy.ndarray) -> bool:
    """Equal but for the last bit of a conversion."""
    return one.shape == other.shape and numpy.allclose(one, other, rtol=2e-7, atol=1e-9, equal_nan=True)


def whole(command: pathlib.Path, folder: pathlib.Path, make, count: int, rng: numpy.random.Generator) -> None:
    for begin in range(0, count, BATCH):
        cases = [make(rng, folder / f"{make.__name__}-{number}") for number in range(min(BATCH, count - begin))]
        done = play(command, folder, cases)
        if done.returncode:
            sys.exit(f"{make.__name__}: {done.stdout}{done.stderr}")
        for number, case in enumerate(cases):
            ours = found(folder, number, case)
            if not is_equal(ours, case.expected):
                sys.exit(f"{make.__name__}: {case.path} {case.source}: {ours[:8]} ({len(ours)}) for {case.expected[:8]} ({len(case.expected)})")


def damage(rng: numpy.random.Generator, data: bytes) -> bytes:
    """Cuts, changes, adds or takes away bytes, mostly at the begin."""
    data = bytearray(data)
    for _ in range(int(rng.integers(1, 4))):
        at = int(rng.integers(0, min(len(data), 160) if rng.random() < 0.8 else len(data))) if data else 0
        match int(rng.integers(0, 4)):
            case 0:
                del data[at:]
            case 1:
                data[at:at + 1] = bytes([int(rng.integers(0, 256))])
            case 2:
                del data[at:at + int(rng.integers(1, 9))]
            case _:
                data[at:at] = bytes(rng.integers(0, 256, int(rng.integers(1, 9)), dtype="u1"))
    return bytes(data)


def theirs(make, case: Case) -> "numpy.ndarray | None":
    """What the independent program finds in a damaged file; None if it refuses it."""
    try:
        if make is wav:
            channel = int(case.source.split()[-1])
            return soundfile.read(case.path, dtype="float32", always_2d=True)[0][:, channel]
        if make is npy:
            return numpy.load(case.path).astype("<c8" if case.is_complex else "<f4").reshape(-1)
    except Exception:  # whatever it refuses with
        return None
    return None


def damaged(command: pathlib.Path, folder: pathlib.Path, make, count: int, rng: numpy.random.Generator) -> dict:
    """No panic, no hang; and what plays is what the independent program finds, or has a note, or it refuses it."""
    seen = {"refused": 0, "equal": 0, "noted": 0, "they refuse": 0, "other": 0}
    for number in range(count):
        case = make(rng, folder / f"{make.__name__}-bad")
        case.path.write_bytes(damage(rng, case.path.read_bytes()))
        done = play(command, folder, [case])
        said = done.stdout + done.stderr
        if done.returncode not in (0, 1, 3) or "panicked" in said:
            sys.exit(f"{make.__name__}, damaged, number {number}: exit status {done.returncode}: {said}")
        ours = found(folder, 0, case)
        if done.returncode == 1:
            if str(folder) not in done.stderr:
                sys.exit(f"{make.__name__}, damaged: the error does not name the file: {done.stderr}")
            seen["refused"] += 1
        elif "note:" in said or "not obtained" in said:
            seen["noted"] += 1
        elif is_equal(ours, case.expected):
            seen["equal"] += 1
        else:
            other = theirs(make, case)
            if other is None:
                seen["they refuse"] += 1
            else:
                seen["equal" if is_equal(ours, other) else "other"] += 1
                if not is_equal(ours, other):
                    (folder / f"other-{make.__name__}-{seen['other']}").write_bytes(case.path.read_bytes())
                    if os.environ.get("ONBEAT_SHOW"):
                        print(case.source, len(ours), ours[:4], len(other), other[:4], case.path.read_bytes()[:64])
    return seen


def check(command: pathlib.Path, folder: pathlib.Path) -> None:
    count = int(os.environ.get("ONBEAT_FILES", "100"))
    for make in (wav, npy, recording):
        rng = numpy.random.default_rng(int(os.environ.get("ONBEAT_SEED", "1")))
        whole(command, folder, make, count, rng)
        seen = damaged(command, folder, make, count, rng)
        print(f"{make.__name__}: {count} whole ones are equal; {count} damaged ones: {seen}")
