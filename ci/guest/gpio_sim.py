"""The kernel's simulated GPIO chip, which Debian's kernels leave out: built from Debian's source of the same kernel."""

import os
import pathlib
import shutil
import subprocess
import tempfile

import machine

# Where that source has the driver, and the interrupts that it simulates.
SOURCES = ["drivers/gpio/gpio-sim.c", "drivers/gpio/gpiolib.h", "kernel/irq/irq_sim.c"]
KBUILD = "obj-m := gpio-sim.o\ngpio-sim-y := driver.o irq_sim.o\n"
# irq_sim is not a module in Linux, and calls what modules cannot.
INNER, OUTER = "handle_simple_irq(irq_to_desc(irqnum))", "generic_handle_irq(irqnum)"


def why_not() -> str | None:
    """Why it cannot be built here, if so."""
    absent = [tool for tool in ("make", "gcc") if shutil.which(tool) is None]
    return f"gpio-sim is not built: {' and '.join(absent)} missing" if absent else None


def module(packages: machine.Packages, release: str) -> pathlib.Path:
    """The module for that kernel, built once."""
    kept = packages.folder / f"gpio-sim_{release}.ko"
    if kept.exists():
        return kept
    series = ".".join(release.split(".")[:2])
    common = release.rsplit("-", 1)[0] + "-common"
    with tempfile.TemporaryDirectory(dir=packages.folder) as work:
        root = pathlib.Path(work)
        for package in (f"linux-headers-{release}", f"linux-headers-{common}", f"linux-kbuild-{series}", f"linux-source-{series}"):
            own = root / package
            own.mkdir()
            shutil.copytree(packages.unpack(package, packages.version(package), own, []), root, symlinks=True, dirs_exist_ok=True)
            shutil.rmtree(own)
        folder = root / "module"
        folder.mkdir()
        tree = f"linux-source-{series}"
        names = [f"{tree}/{name}" for name in SOURCES]
        subprocess.run(["tar", "-xJf", root / "usr/src" / f"{tree}.tar.xz", "-C", root, *names], check=True)
        for name, becomes in zip(SOURCES, ("driver.c", "gpiolib.h", "irq_sim.c"), strict=True):
            text = (root / tree / name).read_text()
            (folder / becomes).write_text(text.replace(INNER, OUTER))
        (folder / "Kbuild").write_text(KBUILD)
        headers = root / "usr/src" / f"linux-headers-{release}"
        makefile = headers / "Makefile"
        makefile.write_text(makefile.read_text().replace("/usr/src/", f"{root}/usr/src/"))
        build = ["make", "-s", "-C", headers, f"M={folder}", "CC=gcc", "modules"]
        done = subprocess.run(build, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"devices: gpio-sim cannot be built:\n{done.stdout}{done.stderr}")
        subprocess.run(["strip", "--strip-debug", folder / "gpio-sim.ko"], check=True)
        os.rename(folder / "gpio-sim.ko", kept)
    return kept
