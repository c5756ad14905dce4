"""The command's tools: host noise, the check of this machine, benchmarks."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from onbeat._errors import Error


def _command(*arguments: str, accepted: tuple[int, ...] = (0,)) -> Any:
    """Runs the command in a process of its own, because it sets priorities and signal handlers."""
    call = [sys.executable, "-m", "onbeat", *arguments, "--format", "json"]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    if done.returncode not in accepted:
        raise Error(done.stderr.strip() or f"onbeat {arguments[0]} ended with status {done.returncode}")
    return json.loads(done.stdout)


def _flags(options: dict[str, Any]) -> list[str]:
    flags = []
    for name, value in options.items():
        flag = f"--{name.replace('_', '-')}"
        if value is True:
            flags.append(flag)
        elif value is not None and value is not False:
            text = ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
            flags.append(f"{flag}={text}")
    return flags


def noise(kind: str = "top", **options: Any) -> Any:
    """Measures the CPU time that the system takes away from programs, as ``onbeat noise`` does. Options are those of the command.

    Returns what the command writes with ``--format json``.
    """
    return _command("noise", kind, *_flags(options), accepted=(0, 2))


def doctor(**options: Any) -> Any:
    """Checks this machine for real time. Returns the findings, worst first."""
    return _command("doctor", *_flags(options), accepted=(0, 2))


def bench(name: str, **options: Any) -> Any:
    """Runs a benchmark of the command, such as ``overhead``. Returns its figures."""
    return _command("bench", name, *_flags(options))
