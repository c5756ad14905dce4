"""The command `onbeat` for scripts that run it."""

import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()


def onbeat() -> pathlib.Path:
    """Where it is: as ONBEAT says, or built from what is here."""
    if "ONBEAT" in os.environ:
        return pathlib.Path(os.environ["ONBEAT"]).resolve()
    subprocess.run(["cargo", "build", "--release", "--locked", "--quiet", "-p", "onbeat-cli"], cwd=ROOT, check=True)
    return TARGET / "release" / "onbeat"
