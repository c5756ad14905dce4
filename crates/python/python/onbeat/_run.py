"""A run in progress."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

from onbeat import _onbeat
from onbeat._errors import DataLost, LimitExceeded, OperatorError
from onbeat._progress import nothing
from onbeat._progress import progress as _progress
from onbeat._record import Record, Row, _rows

#: Warnings: settings that were not obtained. Information: the notes of a run.
_LOG = logging.getLogger("onbeat")

#: Longest wait without looking for Ctrl-C, in seconds.
_SLICE_S = 0.05


@dataclass(frozen=True)
class Miss:
    """A message that was late, and why."""

    #: Operator, or ``from → to`` of the path.
    name: str
    #: Number of the message in its source's sequence, from 0.
    sequence: int
    #: Time at which it ended, in nanoseconds since the start of the run.
    time_ns: int
    #: Time by which it missed its limit, in nanoseconds.
    late_ns: int
    #: Explanation in a sentence.
    sentence: str
    #: Causes, the largest first: ``class``, ``name``, ``took_ns``, ``late_ns``.
    causes: list[Row]


class Run:
    """A run in progress. As a context manager it is stopped at the end of the block."""

    def __init__(self, inner: _onbeat._Run, instances: list[Any], name: str) -> None:
        self._inner, self._instances, self.name = inner, instances, name
        self._record: Record | None = None
        for setting in self.obtained:
            if setting.asked != setting.obtained:
                _LOG.warning("%s: %s: %s asked for, %s obtained: %s", name, setting.what, setting.asked, setting.obtained, setting.reason)

    def __enter__(self) -> Run:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if self._record is None and not self._is_over():
            self.stop()
        if kind is None:
            self.wait()
        else:
            self._until_end()

    async def __aenter__(self) -> Run:
        return self

    async def __aexit__(self, kind: Any, error: Any, trace: Any) -> None:
        if not self._is_over():
            self.stop()
        await self.wait_async()

    def _is_over(self) -> bool:
        return self._inner.wait(0.0) is not None

    @property
    def is_finished(self) -> bool:
        """Whether it has ended."""
        return self._is_over()

    def stop(self) -> None:
        """Asks the sources to end. Messages in flight are processed, and files are finished."""
        self._inner.stop()

    def pause(self, operator: str | None = None) -> None:
        """Pauses all sources, or one operator."""
        self._inner.pause(operator)

    def resume(self, operator: str | None = None) -> None:
        """Resumes all operators, or one."""
        self._inner.resume(operator)

    def stop_operator(self, operator: str) -> None:
        """Ends one operator."""
        self._inner.stop_operator(operator)

    def set(self, parameter: str, value: Any, sample: int | None = None) -> None:
        """Sets a parameter of an operator, as in ``run.set("channel.cutoff", "80 kHz")``, from a sample of its input on."""
        operator, dot, name = parameter.rpartition(".")
        if not dot:
            raise ValueError(f"{parameter!r}: say which operator's, as in \"channel.{parameter}\"")
        self._inner.set(operator, name, value, sample)

    def ring(self, event: str) -> None:
        """Rings an event."""
        self._inner.ring(event)

    def open(self, gate: str) -> None:
        """Opens a gate."""
        self._inner.gate(gate, True)

    def close(self, gate: str) -> None:
        """Closes a gate."""
        self._inner.gate(gate, False)

    @property
    def status(self) -> Row:
        """How it stands: operators, edges, paths, progress."""
        return Row(json.loads(self._inner.status()))

    @property
    def obtained(self) -> list[Row]:
        """Settings requested from the machine, and what was obtained."""
        return _rows([json.loads(one) for one in self._inner.obtained()])

    @property
    def notes(self) -> list[str]:
        """Notes of the plan."""
        return self._inner.notes()

    def misses(self, timeout_s: float | None = None) -> Iterator[Miss]:
        """Yields each late message with its causes, until the run ends or none came for ``timeout_s``."""
        waited = 0.0
        while True:
            text = self._inner.late(_SLICE_S)
            if text is not None:
                waited = 0.0
                yield _miss(text)
                continue
            waited += _SLICE_S
            if self._is_over() or (timeout_s is not None and waited >= timeout_s):
                return

    async def misses_async(self) -> AsyncIterator[Miss]:
        """As ``misses``, for ``async for``."""
        while True:
            text = await asyncio.to_thread(self._inner.late, _SLICE_S)
            if text is not None:
                yield _miss(text)
            elif self._is_over():
                return

    def __aiter__(self) -> AsyncIterator[Miss]:
        return self.misses_async()

    def _until_end(self) -> tuple[str, str]:
        while True:
            answer = self._inner.wait(_SLICE_S)
            if answer is not None:
                return answer

    def wait(self, timeout_s: float | None = None, *, progress: bool = False) -> Record:
        """Waits for the end, and returns the record. ``progress`` shows how far it is, if the package rich is there.

        Raises TimeoutError after ``timeout_s``; OperatorError, DataLost or LimitExceeded if the run failed. Ctrl-C stops the run
        and finishes its files before KeyboardInterrupt is raised.
        """
        if self._record is None:
            left = timeout_s
            show, close = _progress(self) if progress else (nothing, nothing)
            try:
                while (answer := self._inner.wait(_SLICE_S if left is None else min(left, _SLICE_S))) is None:
                    show()
                    if left is not None:
                        left -= _SLICE_S
                        if left <= 0:
                            raise TimeoutError(f"{self.name} has not ended after {timeout_s} s")
            except KeyboardInterrupt:
                self.stop()
                self._until_end()
                raise
            finally:
                close()
            self._record = self._result(*answer)
        return self._record

    async def wait_async(self) -> Record:
        """Waits for the end without blocking the event loop."""
        try:
            while not self._is_over():
                await asyncio.to_thread(self._inner.wait, _SLICE_S)
        except asyncio.CancelledError:
            self.stop()
            raise
        return self.wait()

    @property
    def result(self) -> Record:
        """The record, once the run has ended."""
        return self.wait()

    def _result(self, outcome: str, text: str) -> Record:
        record = Record(json.loads(text), text) if outcome else None
        if record is None or outcome == "failed":
            cause = next((one._failure for one in self._instances if one._failure is not None), None)
            raise OperatorError(text if record is None else record.result.reason, record) from cause
        for note in record.data["notes"]:
            _LOG.info("%s: %s", self.name, note)
        if record.result.exit_status == 3:
            raise DataLost(record.result.reason, record)
        if record.result.exit_status == 2:
            raise LimitExceeded(record.result.reason, record)
        return record

    def __repr__(self) -> str:
        return f"<Run {self.name}: {'ended' if self._is_over() else 'running'}>"

    def __reduce__(self) -> Any:
        raise TypeError("a run cannot be pickled: it is of the process that started it")


def _miss(text: str) -> Miss:
    data = json.loads(text)
    verdict = data["verdict"]
    return Miss(
        data["name"],
        data["sequence"],
        data["time_ns"],
        data["late_ns"],
        verdict["sentence"],
        _rows(verdict["parts"]),
    )
