"""Reference values of video.rs: Pillow, SciPy and ffmpeg."""
import io, subprocess
import numpy as np
from PIL import Image
from scipy import ndimage

def samples(*shape):
    i = np.arange(int(np.prod(shape)), dtype=np.int64)
    return ((i * i * 7 + i * 13 + (i >> 3) * 29) % 256).astype(np.uint8).reshape(shape)

def out(name, array):
    print(name, np.asarray(array, dtype=np.uint8).tobytes().hex())

rgb = samples(6, 8, 3)
out("GREY", Image.fromarray(rgb).convert("L"))
out("YCBCR", Image.fromarray(rgb).convert("YCbCr"))
out("BACK", Image.fromarray(rgb, "YCbCr").convert("RGB"))
for name, filter in [("NEAREST", 0), ("AREA", 4), ("BILINEAR", 2), ("BICUBIC", 3), ("LANCZOS", 1)]:
    out(name + "_SMALL", Image.fromarray(samples(11, 13, 3)).resize((4, 5), filter))
    out(name + "_LARGE", Image.fromarray(samples(5, 4)).resize((9, 7), filter))
weights = np.array([[1, -2, 0.5, 3, 0], [0, 4, -1, 2, 2], [-3, 1, 0, 1, -1.5]])
grey = ndimage.correlate(samples(7, 9).astype(float), weights, mode="nearest")
out("CORRELATED", np.clip(np.floor(grey / 7 + 20 + 0.5), 0, 255))
colour = np.stack([ndimage.correlate(rgb[:, :, c].astype(float), weights, mode="nearest") for c in range(3)], 2)
out("CORRELATED_RGB", np.clip(np.floor(colour / 7 + 20 + 0.5), 0, 255))

def ffmpeg(data, *args):
    return subprocess.run(["ffmpeg", "-loglevel", "error", *args], input=data, stdout=subprocess.PIPE, check=True).stdout

def y4m(w, h, chroma, planes, frames=1):
    return f"YUV4MPEG2 W{w} H{h} F25:1 Ip A1:1 C{chroma}\n".encode() + b"".join(b"FRAME\n" + planes for _ in range(frames))

flags = "neighbor+accurate_rnd+full_chroma_int+full_chroma_inp"
for chroma, count in [("444", 144), ("420jpeg", 72), ("422", 96)]:
    planes = samples(count).tobytes()
    for space in ["bt601", "bt709"]:
        for range_ in ["tv", "pc"]:
            f = f"scale=in_color_matrix={space}:in_range={range_}:out_range=pc:flags={flags}"
            got = ffmpeg(y4m(8, 6, chroma, planes), "-f", "yuv4mpegpipe", "-i", "-", "-vf", f, "-pix_fmt", "rgb24", "-f", "rawvideo", "-")
            out(f"RGB_{chroma}_{space}_{range_}", np.frombuffer(got, np.uint8))
for pix, chroma in [("yuv444p", "444"), ("yuv420p", "420")]:
    for space in ["bt601", "bt709"]:
        f = f"scale=out_color_matrix={space}:in_range=pc:out_range=tv:flags=accurate_rnd+full_chroma_inp+area"
        got = ffmpeg(rgb.tobytes(), "-f", "rawvideo", "-pix_fmt", "rgb24", "-s", "8x6", "-i", "-", "-vf", f, "-pix_fmt", pix, "-f", "rawvideo", "-")
        out(f"YUV_{chroma}_{space}", np.frombuffer(got, np.uint8))

def png(image, **options):
    file = io.BytesIO()
    image.save(file, "png", optimize=True, **options)
    return np.frombuffer(file.getvalue(), np.uint8)

small = samples(3, 4, 4)
out("PNG_L", png(Image.fromarray(small[:, :, 0].copy())))
out("PNG_LA", png(Image.fromarray(small[:, :, :2].copy())))
out("PNG_RGB", png(Image.fromarray(small[:, :, :3].copy())))
out("PNG_RGBA", png(Image.fromarray(small)))
out("PNG_P", png(Image.fromarray(small[:, :, :3].copy()).quantize(5, dither=0)))
p = Image.fromarray(small[:, :, :3].copy()).quantize(5, dither=0)
out("PNG_P_PIXELS", p.convert("RGB"))
one = Image.fromarray((small[:, :, 0] > 127))
out("PNG_1", png(one)); out("PNG_1_PIXELS", one.convert("L"))
wide = (small[:, :, 0].astype(np.uint16) << 8) | small[:, :, 1]
out("PNG_16", png(Image.fromarray(wide)))
print("WIDE", wide.ravel().tolist())
wide = (small[:, :, :3].astype(np.uint16) << 8) | small[:, :, 1:]
got = ffmpeg(wide.astype(">u2").tobytes(), "-f", "rawvideo", "-pix_fmt", "rgb48be", "-s", "4x3", "-i", "-", "-c:v", "png", "-f", "image2pipe", "-")
out("PNG_RGB48", np.frombuffer(got, np.uint8))
print("WIDE3", wide.ravel().tolist())
