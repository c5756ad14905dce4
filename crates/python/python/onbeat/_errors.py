"""Errors of the package."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onbeat._record import Record


class Error(Exception):
    """What all errors of the package are."""


class PipelineError(Error, ValueError):
    """A pipeline that cannot be run.

    ``file``, ``line`` and ``column`` are the place of the mistake, if the pipeline came from a file. ``hint`` says what to do.
    """

    def __init__(
        self,
        message: str,
        file: str | None = None,
        line: int | None = None,
        column: int | None = None,
        hint: str | None = None,
    ) -> None:
        self.message, self.file, self.line, self.column, self.hint = message, file, line, column, hint
        place = "" if not file else f"{file}: " if line is None else f"{file}:{line}:{column}: "
        super().__init__(f"{place}{message}" + (f"\n  help: {hint}" if hint else ""))


class NotObtained(PipelineError):
    """A setting that was asked for and not obtained, under ``strict``."""


class RunFailure(Error):
    """An error of a run that has ended. ``record`` has its measurements."""

    def __init__(self, message: str, record: Record | None = None) -> None:
        self.record = record
        super().__init__(message)


class OperatorError(RunFailure):
    """A failed operator, or a deadlock. If the operator is written in Python, ``__cause__`` is its exception."""


class DataLost(RunFailure):
    """Data was lost unexpectedly. ``record.result.lost`` has the number."""


class LimitExceeded(RunFailure):
    """The run ended because of a miss: ``on_miss = "stop"``."""
