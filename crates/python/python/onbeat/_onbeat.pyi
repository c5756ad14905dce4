"""The engine."""

from collections.abc import Callable
from typing import Any, TypeVar

from numpy.typing import NDArray

_Array = TypeVar("_Array", bound=NDArray[Any])

__version__: str

class Fault(Exception):
    """Mistake in a pipeline: message, file, line, column, help."""

class _ChunkOwner: ...

class Context:
    """The context of a step: clock, stamp, keys, tags. It is valid during the call that gets it."""

    @property
    def now_ns(self) -> int:
        """Time in nanoseconds on the run's clock."""
    @property
    def start_ns(self) -> int:
        """Start of the run in nanoseconds on the run's clock."""
    @property
    def name(self) -> str:
        """Name of the operator."""
    @property
    def is_stopping(self) -> bool:
        """Whether the run is being stopped."""
    @property
    def time_ns(self) -> int:
        """Source time of the message in hand in nanoseconds."""
    @property
    def due_ns(self) -> int | None:
        """Time at which the source should have sent the message in hand, in nanoseconds on the run's clock."""
    @property
    def sequence(self) -> int:
        """Number of the message in hand among those of its source, from 0."""
    @property
    def rate_hz(self) -> float:
        """Samples per second of the first input with samples; 0 if the stream has no rate."""
    @property
    def position(self) -> int:
        """Number in its stream of the first sample of the first input with samples."""
    @property
    def tags(self) -> list[tuple[int, str, Any]]:
        """Marks on the samples of the first input with samples: (index, name, value)."""
    def tag(self, index: int, name: str, value: bool | int | float | str) -> None:
        """Marks a sample of the outputs of this step."""
    def set_rate(self, rate_hz: float) -> None:
        """Sets the samples per second of what this step sends."""
    def set_time(self, time_ns: int, due_ns: int | None = None) -> None:
        """For sources: sets the source time, and the time at which the message should leave."""
    def set_length_ns(self, length_ns: int) -> None:
        """For sources, in ``start``: tells how much source time there is."""
    def key(self, name: str) -> bool | int | float | str | None:
        """A user key of the message in hand."""
    def set_key(self, name: str, value: bool | int | float | str) -> None:
        """Sets a user key on the messages that this step sends."""
    def note(self, text: str) -> None:
        """Adds a note to the record."""

class Emitter:
    """What a step gets for an output of messages. Messages leave when the step returns."""

    @property
    def room(self) -> int:
        """Number of messages for which there is room."""
    def push(self, message: Any) -> None:
        """Sends a message."""

class Step:
    """When an operator wants its next step: ``WAIT``, ``AGAIN``, ``DONE``, or ``until(time_ns)``."""

    class Wait(Step): ...
    class Again(Step): ...
    class Done(Step): ...
    class Until(Step): ...

class _Run:
    def wait(self, timeout_s: float) -> tuple[str, str] | None: ...
    def stop(self) -> None: ...
    def pause(self, operator: str | None) -> None: ...
    def resume(self, operator: str | None) -> None: ...
    def stop_operator(self, operator: str) -> None: ...
    def set(self, operator: str, parameter: str, value: Any, sample: int | None) -> None: ...
    def status(self) -> str: ...
    def late(self, timeout_s: float) -> str | None: ...
    def obtained(self) -> list[str]: ...
    def notes(self) -> list[str]: ...
    def ring(self, event: str) -> None: ...
    def gate(self, gate: str, is_open: bool) -> None: ...

def keep(array: _Array) -> _Array:
    """Lets a step keep an input array. Its chunk comes back to the store when the last array over it is gone."""

def until(time_ns: int) -> Step:
    """Asks for a step at a time, in nanoseconds on the run's clock, or when a message comes."""

def command(arguments: list[str]) -> int: ...
def plan(
    text: str, file: str, folder: str, instances: list[Any]
) -> tuple[str, str]: ...
def start(
    text: str, file: str, folder: str, instances: list[Any]
) -> tuple[_Run, list[Any]]: ...
def report(record: str, label: str) -> str: ...
def kinds() -> str: ...
def parse_toml(text: str) -> dict[str, Any]: ...
def format_toml(table: dict[str, Any]) -> str: ...
def quantity(name: str, value: bool | int | float | str, unit: str) -> float: ...

class Refused(RuntimeError): ...

class _WorkQueue:
    def __init__(self, name: str, policy: str | None, cores: list[int] | None, strict: bool) -> None: ...
    def schedule(self, call: Callable[[], None]) -> bool: ...
    def flush(self) -> None: ...
    def stop(self) -> None: ...
    def obtained(self) -> list[str]: ...
