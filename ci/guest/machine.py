"""A guest: its packages, its first file system, its qemu, and what it says on its serial line."""

import base64
import dataclasses
import gzip
import hashlib
import lzma
import os
import pathlib
import platform
import re
import shutil
import stat
import subprocess
import tempfile
import time

from emulator import Emulator

HERE = pathlib.Path(__file__).resolve().parent
# The packages that always stand for the newest kernel of each flavour.
# The last one has what the tracers have learnt since 6.1; not every release has it.
FLAVOURS = {"stock": "linux-image-amd64", "rt": "linux-image-rt-amd64", "rt-6.12": "linux-image-6.12-rt-amd64"}
# In the short run.
USUAL = ["stock", "rt"]
# What the guests run, and the libraries of that and of the command itself.
TOOLS = ["busybox-static", "rtla", "rt-tests", "util-linux"]
LIBRARIES = ["libc6", "libgcc-s1", "libnuma1", "libcap-ng0", "libsmartcols1", "libtinfo6"]
# Named differently from release to release: what rtla depends on.
OF_RTLA = re.compile(r"libtrace(event|fs)\S*")
# The clock counts the guest's instructions, two nanoseconds for each, and skips the time in which the guest
# sleeps. Other load on this machine therefore takes nothing from the guest.
COUNTED = ["-accel", "tcg,thread=single", "-icount", "shift=1,sleep=off"]
# At once: one guest keeps one CPU busy.
GUESTS = int(os.environ.get("ONBEAT_GUESTS") or os.cpu_count() or 1)


def missing() -> str | None:
    """Why no guest can be had here, if so."""
    if platform.machine() != "x86_64":
        return f"the guests are amd64 machines, and their command cannot be built on {platform.machine()}"
    for tool in ("apt-get", "apt-cache", "dpkg-deb"):
        if shutil.which(tool) is None:
            return f"{tool} is missing: the kernels and the tools are Debian's packages"
    return None


class Packages:
    """Packages of the distribution, downloaded once and unpacked into folders of their own."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.is_updated = False

    def depends(self, package: str) -> list[str]:
        """The names of packages that this one needs."""
        said = subprocess.run(["apt-cache", "depends", package], check=True, capture_output=True, text=True).stdout
        return re.findall(r"Depends: (\S+)", said)

    def version(self, package: str) -> str:
        """The newest version that is known here."""
        said = subprocess.run(["apt-cache", "show", "--no-all-versions", package], capture_output=True, text=True).stdout
        version = re.search(r"^Version: (\S+)", said, re.MULTILINE)
        if version is not None:
            return version[1]
        if self.is_updated:
            raise SystemExit(f"kernels: apt knows no package {package}")
        subprocess.run(["apt-get", "update", "-qq"], check=True)
        self.is_updated = True
        return self.version(package)

    def unpacked(self, package: str) -> pathlib.Path:
        """The folder with the package's files; of a kernel package with the kernel only: its modules are 400 MB."""
        version = self.version(package)
        folder = self.folder / f"{package}_{version.replace(':', '-')}"
        if not folder.exists():
            with tempfile.TemporaryDirectory(dir=self.folder) as work:
                only = ["*/boot/*"] if package.startswith("linux-image") else []
                os.rename(self.unpack(package, version, pathlib.Path(work), only), folder)
        return folder

    def unpack(self, package: str, version: str, work: pathlib.Path, only: list[str]) -> pathlib.Path:
        """Unpacks the package's files, or only those of these patterns, into a folder in `work`."""
        self.download(package, version, work)
        (archive,) = work.glob("*.deb")
        files = work / "files"
        files.mkdir()
        stream = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", archive], stdout=subprocess.PIPE)
        subprocess.run(["tar", "-x", "-C", files, "--wildcards", *only], stdin=stream.stdout, check=True)
        if stream.wait():
            raise SystemExit(f"kernels: {archive.name} cannot be unpacked")
        return files

    def download(self, package: str, version: str, work: pathlib.Path) -> None:
        """Into that folder."""
        command = ["apt-get", "download", "-qq", "-o", "APT::Sandbox::User=root", f"{package}={version}"]
        if subprocess.run(command, cwd=work).returncode:
            # The lists may be older than the archive: what they name is gone.
            subprocess.run(["apt-get", "update", "-qq"], check=True)
            subprocess.run(command, cwd=work, check=True)

    def image(self, flavour: str) -> str:
        """The package of the newest kernel of that flavour."""
        if not self.depends_known(FLAVOURS[flavour]):
            subprocess.run(["apt-get", "update", "-qq"], check=True)
        (package,) = [name for name in self.depends(FLAVOURS[flavour]) if name.startswith("linux-image-")]
        return package

    def kernel(self, flavour: str) -> pathlib.Path:
        """The newest kernel of that flavour."""
        (kernel,) = (self.unpacked(self.image(flavour)) / "boot").glob("vmlinuz-*")
        return kernel

    def modules(self, flavour: str, names: list[str]) -> pathlib.Path:
        """A folder with the modules of that kernel that have these names, those that they need, and what modprobe reads."""
        package = self.image(flavour)
        version = self.version(package)
        key = hashlib.sha256(" ".join(names).encode()).hexdigest()[:8]
        folder = self.folder / f"{package}_{version.replace(':', '-')}_modules_{key}"
        if not folder.exists():
            with tempfile.TemporaryDirectory(dir=self.folder) as work:
                files = self.unpack(package, version, pathlib.Path(work), ["*/modules/*"])
                chosen = pathlib.Path(work) / "chosen"
                chosen.mkdir()
                choose_modules(files, names, chosen)
                os.rename(chosen, folder)
        return folder

    def depends_known(self, package: str) -> bool:
        """Whether apt has that package in its lists."""
        return subprocess.run(["apt-cache", "show", package], capture_output=True).returncode == 0

    def tools(self) -> list[pathlib.Path]:
        """Folders with the programs and the libraries of the guests."""
        names = TOOLS + LIBRARIES
        names += [name for name in self.depends("rtla") if OF_RTLA.fullmatch(name)]
        return [self.unpacked(name) for name in names]


def choose_modules(files: pathlib.Path, names: list[str], chosen: pathlib.Path) -> None:
    """Copies modules and those that they need. Names that the kernel does not have are left out."""
    found = {path.name.partition(".ko")[0].replace("-", "_"): path for path in files.rglob("*.ko*")}
    needs: dict[str, list[str]] = {}

    def copy(name: str) -> list[str]:
        """Returns all that it needs, what is needed by others last."""
        if name not in needs:
            content = found[name].read_bytes()
            content = lzma.decompress(content) if found[name].suffix == ".xz" else content
            (chosen / f"{name}.ko").write_bytes(content)
            direct = re.search(rb"\0depends=([^\0]*)\0", content)
            needed: list[str] = []
            for one in filter(None, direct[1].decode().replace("-", "_").split(",") if direct else []):
                more = [one, *copy(one)]
                needed = [other for other in needed if other not in more] + more
            needs[name] = needed
        return needs[name]

    for name in names:
        if name in found:
            copy(name)
    lines = [f"{name}.ko: {' '.join(f'{one}.ko' for one in needed)}" for name, needed in needs.items()]
    (chosen / "modules.dep").write_text("\n".join(lines) + "\n")


def initramfs(init: pathlib.Path, command: pathlib.Path, folders: list[pathlib.Path], programs: dict[str, str], others: dict[str, pathlib.Path]) -> bytes:
    """A guest's first file system: /init, the command, programs from these folders with their names in the guest, every library there,
    and other files."""
    files = {"init": init, "etc/prelude": HERE / "prelude", "bin/onbeat": command, **others}
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            # A library's name is often a link to the file: here each name is a file.
            if path.name in programs and path.parent.name == "bin" and path.is_file():
                files[f"bin/{programs[path.name]}"] = path
            elif re.search(r"\.so(\.\d+)*$", path.name) and path.is_file() and not {"gconv", "audit"} & set(path.parts):
                where = "lib64" if path.name.startswith("ld-linux") else "lib/x86_64-linux-gnu"
                files[f"{where}/{path.name}"] = path.resolve()
    absent = [name for name, there in programs.items() if f"bin/{there}" not in files]
    if absent:
        raise SystemExit(f"kernels: the packages have no {', '.join(absent)}")
    names = {str(parent) for name in files for parent in pathlib.PurePath(name).parents if str(parent) != "."}
    names |= {"dev", "proc", "sys", "tmp", "run"}
    entries = [(name, stat.S_IFDIR | 0o755, b"") for name in sorted(names)]
    entries += [(name, stat.S_IFREG | 0o755, path.read_bytes()) for name, path in sorted(files.items())]
    return gzip.compress(archive(entries), compresslevel=1)


def archive(entries: list[tuple[str, int, bytes]]) -> bytes:
    """In the kernel's form for it, cpio with a head in hexadecimal; see Documentation/driver-api/early-userspace in Linux."""
    out = bytearray()
    for number, (name, mode, content) in enumerate([*entries, ("TRAILER!!!", 0, b"")], 1):
        raw = name.encode() + b"\0"
        links = 2 if stat.S_ISDIR(mode) else 1
        fields = (number, mode, 0, 0, links, 0, len(content), 0, 0, 0, 0, len(raw), 0)
        out += b"070701" + b"".join(b"%08x" % field for field in fields) + raw
        out += b"\0" * (-len(out) % 4) + content
        out += b"\0" * (-len(out) % 4)
    return bytes(out)


class Silent(Exception):
    """A guest that did not come to its end."""


@dataclasses.dataclass
class Said:
    """What a command in the guest wrote, and its exit status."""

    text: str
    status: int


@dataclasses.dataclass
class Guest:
    """A guest that has ended."""

    seconds: float
    said: dict[str, Said]


@dataclasses.dataclass
class Boot:
    """A guest to come: its name, kernel, first file system, words of its command line, and how long the host waits for it."""

    name: str
    kernel: pathlib.Path
    first: pathlib.Path
    line: str
    watchdog_s: float
    cpus: int = 2
    # Further arguments of qemu.
    devices: tuple[str, ...] = ()


def boot(given: Boot, qemu: Emulator, folder: pathlib.Path) -> Guest:
    """Boots it, waits until it has powered itself off, and returns what it said."""
    console = folder / f"{given.name}.console"
    begins = ["nice", "-n", "5", *qemu.command, "-M", "q35", "-cpu", "max", "-smp", str(given.cpus), "-m", "1024"]
    begins += [*COUNTED, "-display", "none", "-monitor", "none", "-no-reboot", "-net", "none", "-serial", f"file:{console}", *given.devices]
    begins += ["-kernel", str(given.kernel), "-initrd", str(given.first), "-append", f"console=ttyS0 quiet panic=-1 {given.line}"]
    begin = time.monotonic()
    process = subprocess.Popen(begins, stdin=subprocess.DEVNULL, env=qemu.environment)
    ended = f"it had not ended after {given.watchdog_s} s"
    try:
        ended = f"qemu ended with status {process.wait(timeout=given.watchdog_s)}"
    except subprocess.TimeoutExpired:
        pass
    finally:
        process.kill()
        process.wait()
    text = console.read_text(errors="replace").replace("\r", "") if console.exists() else ""
    if "@@ done" not in text:
        tail = "\n".join(text.splitlines()[-30:])
        raise Silent(f"{tail}\nthe guest {given.name} did not come to its end: {ended}; all it said is in {console}")
    return Guest(time.monotonic() - begin, sections(text))


def sections(text: str) -> dict[str, Said]:
    """The parts of what it said, by their names. Lines of the kernel may stand between them, and are left out."""
    said = {}
    for match in re.finditer(r"^@@ begin (\S+)\n(.*?)^@@ end \1 (\d+)$", text, re.MULTILINE | re.DOTALL):
        packed = "".join(line for line in match[2].splitlines() if re.fullmatch(r"[A-Za-z0-9+/=]+", line))
        said[match[1]] = Said(gzip.decompress(base64.b64decode(packed)).decode(errors="replace"), int(match[3]))
    return said
