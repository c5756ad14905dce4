"""qemu: the one that is installed, or where that is too old the newest one of the distribution, downloaded and not installed."""

import dataclasses
import os
import pathlib
import platform
import re
import shutil
import subprocess
import tempfile

# The oldest version in which a guest with two CPUs and counted instructions boots; in 7.2 it stops when the
# second CPU starts.
OLDEST = 10
PACKAGE = "qemu-system-x86"
KEYS = pathlib.Path("/usr/share/keyrings/debian-archive-keyring.gpg")


@dataclasses.dataclass
class Emulator:
    """How it is called, and the environment for that."""

    command: list[str]
    environment: dict[str, str]


def emulator(folder: pathlib.Path) -> Emulator:
    """The installed one, or one that is kept in that folder."""
    installed = Emulator(["qemu-system-x86_64"], dict(os.environ))
    if shutil.which(installed.command[0]) and major(installed) >= OLDEST:
        return installed
    root = folder / PACKAGE
    if not root.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as work:
            fetch(pathlib.Path(work))
            os.rename(f"{work}/files", root)
    libraries = [f"{root}/{place}/x86_64-linux-gnu" for place in ("usr/lib", "lib")]
    command = [f"{root}/usr/bin/qemu-system-x86_64", "-L", f"{root}/usr/share/qemu", "-L", f"{root}/usr/share/seabios"]
    # It would take the modules of an older one that is installed, too, and end.
    modules = f"{libraries[0]}/qemu"
    kept = Emulator(command, os.environ | {"LD_LIBRARY_PATH": ":".join(libraries), "QEMU_MODULE_DIR": modules})
    if major(kept) < OLDEST:
        raise SystemExit(f"kernels: the newest qemu of this distribution and its backports is older than {OLDEST}; install a newer one")
    return kept


def major(found: Emulator) -> int:
    """The first number of its version."""
    said = subprocess.run([*found.command, "--version"], env=found.environment, check=True, capture_output=True, text=True).stdout
    return int(re.search(r"version (\d+)", said)[1])


def fetch(work: pathlib.Path) -> None:
    """The package, and what it needs and is not installed here, unpacked into work/files. With lists of its own: the machine's may
    lack the backports, and only root may renew those."""
    release = platform.freedesktop_os_release()["VERSION_CODENAME"]
    sites = ["$(ORIGIN) $(CODENAME) $(REPO_URI)", "Created-By: Packages", f"Codename: {release}", "Component: main"]
    known = subprocess.run(["apt-get", "indextargets", "--format", *sites], check=True, capture_output=True, text=True).stdout
    site = next((line.split()[2] for line in known.splitlines() if line.startswith(f"Debian {release} ")), None)
    if site is None:
        raise SystemExit(f"kernels: apt has no site for {release} main, where qemu {OLDEST} could come from; add one to its sources, or install qemu {OLDEST}")
    suites = (release, f"{release}-backports")
    (work / "sources").write_text("".join(f"deb [signed-by={KEYS}] {site} {suite} main\n" for suite in suites))
    for part in ("lists/partial", "cache/archives/partial", "packages", "files"):
        (work / part).mkdir(parents=True)
    places = {"Etc::sourcelist": "sources", "State::lists": "lists", "Cache": "cache"}
    own = ["-qq", "-o", "Dir::Etc::sourceparts=-", "-o", "APT::Sandbox::User=root"]
    own += [word for place, name in places.items() for word in ("-o", f"Dir::{place}={work / name}")]
    subprocess.run(["apt-get", *own, "update"], check=True)
    install = ["apt-get", *own, "--simulate", "--no-install-recommends", "-t", suites[1], "install", PACKAGE]
    planned = subprocess.run(install, check=True, capture_output=True, text=True).stdout
    packages = [f"{name}={version}" for name, version in re.findall(r"^Inst (\S+) (?:\[\S+\] )?\((\S+) ", planned, re.MULTILINE)]
    subprocess.run(["apt-get", *own, "download", *packages], cwd=work / "packages", check=True)
    for package in sorted((work / "packages").iterdir()):
        subprocess.run(["dpkg-deb", "-x", package, work / "files"], check=True)
