"""The job `image` of `onbeat bench jobs` in OpenCV: blur, threshold and half the size of grey frames.

    jobs.py list
    jobs.py VARIANT image FOLDER RESULT CORE,...    {"samples": bytes of the input, "seconds": of the processing}
"""

import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import cv2
import numpy as np

VARIANTS = {
    "default": "one frame after the other; OpenCV shares a frame between its threads",
    "best": "one thread per core, each with frames of its own",
}


def process(frame, smooth, small):
    """The operators of the pipeline. For a kernel of 5 samples, OpenCV has the weights 1 4 6 4 1."""
    cv2.GaussianBlur(frame, (5, 5), 0, dst=smooth, borderType=cv2.BORDER_REPLICATE)
    cv2.threshold(smooth, 127, 255, cv2.THRESH_BINARY, dst=smooth)
    return cv2.resize(smooth, small.shape[::-1], dst=small, interpolation=cv2.INTER_AREA)


def main(variant, folder, result, cores):
    os.sched_setaffinity(0, cores)
    lanes = len(cores) if variant == "best" else 1
    cv2.setNumThreads(len(cores) // lanes)
    source = open(os.path.join(folder, "input"), "rb", buffering=0)
    major, _ = np.lib.format.read_magic(source)
    assert major == 1
    (frames, rows, columns), _, dtype = np.lib.format.read_array_header_1_0(source)
    assert dtype == np.uint8
    sink = open(result, "wb", buffering=0)
    shape = (frames, rows // 2, columns // 2)
    np.lib.format.write_array_header_1_0(sink, {"descr": "|u1", "fortran_order": False, "shape": shape})
    full = [np.empty((rows, columns), np.uint8) for _ in range(2 * lanes)]
    small = [np.empty(shape[1:], np.uint8) for _ in range(lanes)]

    begin = time.perf_counter()
    if lanes == 1:
        for _ in range(frames):
            source.readinto(full[0])
            sink.write(process(full[0], full[1], small[0]))
    else:
        with ThreadPoolExecutor(lanes) as pool:
            each_lane(source, sink, frames, full, small, pool)
    seconds = time.perf_counter() - begin
    print(json.dumps({"samples": frames * rows * columns, "seconds": seconds}))


def each_lane(source, sink, frames, full, small, pool):
    """Each thread reads, processes and writes frames of its own, at their places in the files."""
    begin_in, begin_out = source.tell(), sink.tell()
    lanes = len(small)

    def run(lane):
        frame, smooth, result = full[2 * lane], full[2 * lane + 1], small[lane]
        for number in range(lane, frames, lanes):
            os.preadv(source.fileno(), [frame], begin_in + number * frame.size)
            process(frame, smooth, result)
            os.pwrite(sink.fileno(), result, begin_out + number * result.size)

    list(pool.map(run, range(lanes)))


if __name__ == "__main__":
    words = sys.argv[1:]
    if words == ["list"]:
        for name, how in VARIANTS.items():
            entry = {"peer": "opencv", "version": cv2.__version__, "variant": name, "how": how}
            # On one core, both are the same.
            cores = [1, 2] if name == "default" else [2]
            print(json.dumps(entry | {"jobs": ["image"], "cores": cores}))
    elif len(words) == 5 and words[0] in VARIANTS and words[1] == "image":
        main(words[0], words[2], words[3], [int(core) for core in words[4].split(",")])
    else:
        sys.exit("usage: list | VARIANT image FOLDER RESULT CORE,...")
