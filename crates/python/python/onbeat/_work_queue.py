"""Work queues: a real-time thread that calls functions."""

from __future__ import annotations

import json
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

from onbeat import _onbeat
from onbeat._errors import NotObtained
from onbeat._record import Row, _rows

T = TypeVar("T")


class WorkQueue:
    """A thread that calls functions in the order in which they were submitted, under a policy and on cores of its own.

    >>> with WorkQueue("sums") as queue:
    ...     queue.submit(sum, [1, 2, 3]).result()
    6

    ``policy`` is as in pipelines (``"f:80"``), ``cores`` a list. With ``strict``, a setting that the machine refuses raises
    NotObtained; otherwise ``obtained`` says so. The name of the thread has at most 15 bytes.
    """

    def __init__(
        self, name: str, *, policy: str | None = None, cores: Sequence[int] | None = None, strict: bool = False
    ) -> None:
        try:
            self._inner = _onbeat._WorkQueue(name, policy, None if cores is None else list(cores), strict)
        except _onbeat.Refused as error:
            raise NotObtained(str(error)) from None
        self.name = name
        # Also at the end of the interpreter, which the thread needs for its calls.
        weakref.finalize(self, self._inner.stop)

    def submit(self, function: Callable[..., T], *arguments: Any, **named: Any) -> Future[T]:
        """Schedules a call, from any thread. Its result or exception is that of the future."""
        future: Future[T] = Future()

        def call() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                result = function(*arguments, **named)
            except BaseException as error:  # noqa: BLE001: it is raised where the result is asked for
                future.set_exception(error)
            else:
                future.set_result(result)

        if not self._inner.schedule(call):
            raise RuntimeError(f"the work queue {self.name!r} is stopped: submit before stop()")
        return future

    def flush(self) -> None:
        """Waits until all calls submitted before have returned. In a call of this queue it raises RuntimeError."""
        self._inner.flush()

    def stop(self) -> None:
        """Waits for all calls, and ends the thread. A second stop does nothing."""
        self._inner.stop()

    @property
    def obtained(self) -> list[Row]:
        """Settings requested from the machine, and what was obtained."""
        return _rows([json.loads(one) for one in self._inner.obtained()])

    def __enter__(self) -> WorkQueue:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self.stop()

    def __reduce__(self) -> Any:
        raise TypeError("a work queue cannot be pickled: it is a thread of this process")
