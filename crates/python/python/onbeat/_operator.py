"""Operators written in Python: ports and parameters by annotation."""

from __future__ import annotations

import inspect
import sys
import typing
from collections.abc import Callable
from typing import Any, Generic, TypeVar, get_args, get_origin

from onbeat import _onbeat

T = TypeVar("T")


class Real:
    """Samples of type float32: the step gets an array."""


class Complex:
    """Samples of type complex64: the step gets an array."""


class Bytes:
    """Samples of type uint8: the step gets an array."""


class Int16:
    """Samples of type int16: the step gets an array."""


class Int32:
    """Samples of type int32: the step gets an array."""


class Real64:
    """Samples of type float64: the step gets an array."""


class Complex128:
    """Samples of type complex128: the step gets an array."""


#: Words of the engine for the types of messages.
_WORDS: dict[Any, str] = {
    Real: "real",
    Complex: "complex",
    Bytes: "bytes",
    Int16: "int16",
    Int32: "int32",
    Real64: "real64",
    Complex128: "complex128",
    float: "float",
    int: "int",
    bool: "bool",
    str: "str",
    object: "object",
    Any: "object",
}
_SAMPLES = frozenset({"real", "complex", "bytes", "int16", "int32", "real64", "complex128"})


class Input(Generic[T]):
    """An input port, as the annotation of an operator: ``x: Input[Real]``."""


class Output(Generic[T]):
    """An output port, as the annotation of an operator: ``y: Output[Real]``."""


class InOut(Generic[T]):
    """Samples that the operator changes in place, as its only port: ``x: InOut[Real]``. The array is writable."""


class Param(Generic[T]):
    """A parameter, as the annotation of an operator: ``gain: Param[float] = param(1.0, unit="dB")``."""

    @typing.overload
    def __get__(self, instance: None, owner: Any) -> Param[T]: ...
    @typing.overload
    def __get__(self, instance: object, owner: Any) -> T: ...
    def __get__(self, instance: Any, owner: Any) -> Any:
        raise NotImplementedError  # For type checkers: a descriptor takes its place.

    def __set__(self, instance: Any, value: T) -> None:
        raise NotImplementedError


_REQUIRED: Any = object()
_UNITS = ("Hz", "s", "dB", "B")


class _Parameter:
    """A parameter of a class: it checks each value that it gets."""

    def __init__(
        self,
        default: Any,
        unit: str | None,
        at_least: float | None,
        at_most: float | None,
        choices: typing.Sequence[Any] | None,
        live: bool,
        doc: str,
    ) -> None:
        if unit is not None and unit not in _UNITS:
            raise TypeError(f"unit {unit!r}: the units are {', '.join(_UNITS)}")
        self.default, self.unit, self.live, self.doc = default, unit, live, doc
        self.at_least, self.at_most, self.choices = at_least, at_most, choices
        self.name = ""
        self.type: Any = None

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        try:
            return instance.__dict__[self.name]
        except KeyError:
            raise AttributeError(f"parameter {self.name!r} has no value") from None

    def __set__(self, instance: Any, value: Any) -> None:
        instance.__dict__[self.name] = self.checked(value)

    def checked(self, value: Any) -> Any:
        """Returns the value in the unit and type of the parameter."""
        if self.unit is not None and isinstance(value, (str, int, float)) and not isinstance(value, bool):
            value = _onbeat.quantity(self.name, value, self.unit)
        if self.type is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        wanted = self.type if isinstance(self.type, type) else get_origin(self.type)
        is_wrong_bool = isinstance(value, bool) and wanted in (int, float)
        if isinstance(wanted, type) and wanted is not object and (not isinstance(value, wanted) or is_wrong_bool):
            found = type(value).__name__
            raise TypeError(f"`{self.name}` is {value!r}, of type {found}: it is of type {wanted.__name__}")
        unit = f" {self.unit}" if self.unit else ""
        if self.at_least is not None and not value >= self.at_least:
            raise ValueError(f"`{self.name}` is {value}{unit}: it is at least {self.at_least}{unit}")
        if self.at_most is not None and not value <= self.at_most:
            raise ValueError(f"`{self.name}` is {value}{unit}: it is at most {self.at_most}{unit}")
        if self.choices is not None and value not in self.choices:
            raise ValueError(f"`{self.name}` is {value!r}: it is one of {', '.join(map(repr, self.choices))}")
        return value


def param(
    default: Any = _REQUIRED,
    *,
    unit: str | None = None,
    at_least: float | None = None,
    at_most: float | None = None,
    choices: typing.Sequence[Any] | None = None,
    live: bool = False,
    doc: str = "",
) -> Any:
    """Describes a parameter: its default, unit ("Hz", "s", "dB", "B"), range, and whether it can change during a run (``live``).

    A value with a unit can be a number in that unit, or a text such as ``"-45 kHz"``.
    """
    return _Parameter(default, unit, at_least, at_most, choices, live, doc)


class Operator:
    """An operator written in Python.

    Ports and parameters are annotations of the class:

    >>> import numpy as np
    >>> class Loud(Operator):
    ...     x: Input[Real]
    ...     y: Output[Real]
    ...     gain: Param[float] = param(2.0, at_least=0.0, live=True)
    ...     def step(self, cx, x, y):
    ...         np.multiply(x, self.gain, out=y)
    >>> Loud(gain=3).gain
    3.0

    A step gets the context, then the inputs, then the outputs, in the order of the annotations. For samples it gets arrays over
    the chunks themselves: inputs are read-only, outputs should be filled, and both end with the step. Without a return value, all
    samples of the inputs are used and all of the outputs are made. Otherwise ``step`` returns a number of samples, ``(used,
    made)``, ``onbeat.WAIT``, ``onbeat.AGAIN``, ``onbeat.DONE`` or ``onbeat.until(time_ns)``.

    An operator whose only port is ``x: InOut[Real]`` changes samples in place: its step gets one writable array per chunk, and the
    chunk goes on without a copy, unless another operator reads it too.

    For single values the inputs are the values, and the outputs have ``push(value)``.

    A source has no inputs and is stepped until it returns ``onbeat.DONE``. With the attribute ``rate_hz`` (samples per second)
    it keeps the pace of the run.
    """

    #: Output samples per ``decimation`` input samples.
    interpolation: int = 1
    #: Input samples per ``interpolation`` output samples.
    decimation: int = 1

    _inputs: list[tuple[str, str]] = []
    _outputs: list[tuple[str, str]] = []
    #: The only port of an operator that changes samples in place.
    _in_place: list[tuple[str, str]] = []
    _parameters: dict[str, _Parameter] = {}
    _settable: list[str] = []
    _failure: BaseException | None = None
    #: For a class of a decorated function: the function.
    _function: Callable[..., Any] | None = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        inputs, outputs = dict(cls._inputs), dict(cls._outputs)
        parameters, in_place = dict(cls._parameters), dict(cls._in_place)
        for name, annotation in _annotations(cls).items():
            origin, arguments = get_origin(annotation), get_args(annotation)
            if origin in (Input, Output):
                ports, others = (inputs, outputs) if origin is Input else (outputs, inputs)
                if name in others:
                    raise TypeError(f"{cls.__name__}.{name} is an input and an output: give each port its own name")
                ports[name] = _word(cls.__name__, name, arguments[0])
            elif origin is InOut:
                in_place[name] = _word(cls.__name__, name, arguments[0])
                if in_place[name] not in _SAMPLES:
                    raise TypeError(f"{cls.__name__}.{name}: only samples can be changed in place")
            elif origin is Param:
                parameter = cls.__dict__.get(name, _REQUIRED)
                if not isinstance(parameter, _Parameter):
                    parameter = _Parameter(parameter, None, None, None, None, False, "")
                    parameter.__set_name__(cls, name)
                    setattr(cls, name, parameter)
                parameter.type = arguments[0]
                if parameter.default is not _REQUIRED:
                    parameter.default = parameter.checked(parameter.default)
                parameters[name] = parameter
            elif annotation in (Input, Output, InOut, Param):
                raise TypeError(f"{cls.__name__}.{name}: say of what, as in {annotation.__name__}[onbeat.Real]")
        if in_place and (len(in_place) > 1 or inputs or outputs):
            first = next(iter(in_place))
            raise TypeError(f"{cls.__name__}: an InOut, here `{first}`, is the only port of its operator")
        cls._inputs, cls._outputs, cls._parameters = list(inputs.items()), list(outputs.items()), parameters
        cls._in_place = list(in_place.items())
        cls._settable = [name for name, parameter in parameters.items() if parameter.live]
        if "step" in cls.__dict__:
            _check_step(cls)

    def __init__(self, **values: Any) -> None:
        unknown = [name for name in values if name not in self._parameters]
        if unknown:
            known = ", ".join(self._parameters) or "none"
            raise TypeError(f"{type(self).__name__} has no parameter `{unknown[0]}`: it has {known}")
        for name, parameter in self._parameters.items():
            value = values.get(name, parameter.default)
            if value is _REQUIRED:
                raise TypeError(f"{type(self).__name__} lacks its parameter `{name}`")
            setattr(self, name, value)

    def start(self, cx: _onbeat.Context) -> None:
        """Opens files and makes arrays, before the first step."""

    # Each class has its own arguments.
    def step(self, *arguments: Any, **named: Any) -> Any:
        """Does one activation: gets the context, the inputs and the outputs."""
        raise NotImplementedError(f"{type(self).__name__} has no method `step`")

    def stop(self, cx: _onbeat.Context, ending: str) -> None:
        """Finishes files, after the last step. ``ending`` is "ended", "stopped" or "failed"."""

    def degrade(self, late_ns: int) -> None:
        """Does less per message from now on, because a message was late by that many nanoseconds (``on_miss = "degrade"``)."""

    def _set(self, name: str, value: Any) -> None:
        setattr(self, name, value)

    def _values(self) -> dict[str, Any]:
        """Parameters that differ from their defaults."""
        values = ((name, getattr(self, name)) for name in self._parameters)
        return {name: value for name, value in values if value != self._parameters[name].default}

    def __reduce__(self) -> Any:
        raise TypeError(f"{type(self).__name__} is an operator and cannot be pickled: make a new one in the other process")


def _annotations(cls: type) -> dict[str, Any]:
    """Annotations of the class itself, as objects."""
    if sys.version_info >= (3, 14):
        import annotationlib

        found = annotationlib.get_annotations(cls, format=annotationlib.Format.VALUE)
    else:
        found = cls.__dict__.get("__annotations__", {})
    module = sys.modules.get(cls.__module__)
    # Where the class is made: names of a function are known only there.
    frame = inspect.currentframe()
    local: dict[str, Any] = {}
    while frame is not None and frame.f_globals.get("__name__") != cls.__module__:
        frame = frame.f_back
    if frame is not None:
        local = dict(frame.f_locals)
    names = {**vars(typing), **(vars(module) if module else {}), **local}
    resolved = {}
    for name, annotation in found.items():
        if isinstance(annotation, str):
            try:
                annotation = eval(annotation, names)  # noqa: S307: the programmer's own annotation
            except NameError as error:
                raise TypeError(f"{cls.__name__}.{name}: the annotation {annotation!r}: {error}") from None
        resolved[name] = annotation
    return resolved


def _word(owner: str, name: str, kind: Any) -> str:
    word = _WORDS.get(kind) if isinstance(kind, typing.Hashable) else None
    if word is None:
        known = ", ".join(kind.__name__ for kind in list(_WORDS)[:-1])
        shown = getattr(kind, "__name__", repr(kind))
        raise TypeError(f"{owner}.{name}: there is no message of type {shown}: use one of {known}")
    return word


def _check_step(cls: type[Operator]) -> None:
    """Checks that `step` takes the context and one argument per port."""
    try:
        signature = inspect.signature(cls.__dict__["step"])
    except (TypeError, ValueError):
        return
    ports = [name for name, _ in cls._inputs + cls._outputs + cls._in_place]
    try:
        signature.bind(None, None, *ports)
    except TypeError:
        wanted = ", ".join(["self", "cx", *ports])
        raise TypeError(f"{cls.__name__}.step{signature}: its ports are given in order: step({wanted})") from None


def operator(function: Callable[..., Any]) -> Callable[..., Operator]:
    """Makes an operator of a function. Its annotations are the ports.

    >>> @operator
    ... def power(iq: Complex) -> Real:
    ...     return (iq * iq.conj()).real
    >>> node = power()

    Arguments with a default value are parameters: ``def scale(x: Real, gain: float = 2.0) -> Real``. A function with a result
    of samples returns an array, which is copied into a chunk. A function without inputs is a source; it ends when it returns
    None. Other functions that return None send nothing.
    """
    name = function.__name__
    signature = inspect.signature(function)
    # Names of the place where the function is made.
    frame = inspect.currentframe()
    place = frame.f_back if frame is not None else None
    try:
        hints = typing.get_type_hints(function, localns=dict(place.f_locals) if place is not None else None)
    except NameError as error:
        raise TypeError(f"{name}: an annotation: {error}") from None
    inputs: list[tuple[str, str]] = []
    parameters: dict[str, _Parameter] = {}
    for argument in signature.parameters.values():
        if argument.default is not inspect.Parameter.empty:
            default = argument.default
            parameter = default if isinstance(default, _Parameter) else _Parameter(default, None, None, None, None, True, "")
            parameter.name, parameter.type = argument.name, hints.get(argument.name)
            parameters[argument.name] = parameter
        elif argument.name not in hints:
            raise TypeError(f"{name}: annotate argument `{argument.name}` with the type of its messages, such as onbeat.Real")
        else:
            inputs.append((argument.name, _word(name, argument.name, hints[argument.name])))
    result = hints.get("return")
    is_empty = result in (None, type(None))
    outputs = [] if is_empty else [("out", _word(name, "the result", result))]
    return _function_class(function, inputs, outputs, parameters)


def _function_class(
    function: Callable[..., Any],
    inputs: list[tuple[str, str]],
    outputs: list[tuple[str, str]],
    parameters: dict[str, _Parameter],
) -> type[Operator]:
    count, names = len(inputs), list(parameters)
    sends_samples = bool(outputs) and outputs[0][1] in _SAMPLES

    def step(self: Any, cx: Any, *ports: Any) -> Any:
        result = function(*ports[:count], **{name: getattr(self, name) for name in names})
        if not outputs:
            return result
        if isinstance(result, _onbeat.Step):
            return result
        if result is None:
            return (len(ports[0]) if count and sends_samples else 0, 0) if count else _onbeat.Step.Done()
        if not sends_samples:
            ports[count].push(result)
            return None
        out = ports[count]
        made = len(result)
        if made > len(out):
            raise ValueError(f"{function.__name__} returned {made} samples: there is room for {len(out)}")
        out[:made] = result
        return made

    members: dict[str, Any] = {
        "__doc__": function.__doc__,
        "__module__": function.__module__,
        "__qualname__": function.__qualname__,
        "step": step,
        **parameters,
    }
    made: type[Operator] = type(function.__name__, (Operator,), {"__annotations__": {}, **members})
    made._inputs, made._outputs, made._parameters = inputs, outputs, parameters
    made._settable = [name for name, parameter in parameters.items() if parameter.live]
    made._function = staticmethod(function)
    return made
