"""A real-time dataflow runtime for Linux that explains its own jitter.

A pipeline consists of operators and of edges between them. Operators are built in (``sigmf.source``, ``fir.decimate``, ...)
or written in Python:

>>> import numpy as np
>>> import onbeat
>>> class Square(onbeat.Operator):
...     x: onbeat.Input[onbeat.Real]
...     y: onbeat.Output[onbeat.Real]
...     def step(self, cx, x, y):
...         np.multiply(x, x, out=y)
>>> p = onbeat.Pipeline("squares")
>>> source = p.add("null.source", "source", count=10)
>>> _ = p.connect(source, p.add(Square()), p.add("null.sink", "end"))
>>> record = p.run()
>>> record.edges["Square.y -> end.in"].received
10
"""

from onbeat._errors import (
    DataLost,
    Error,
    LimitExceeded,
    NotObtained,
    OperatorError,
    PipelineError,
)
from onbeat._kinds import Kind, kinds
from onbeat._onbeat import Context, Emitter, Step, __version__, keep, until
from onbeat._operator import (
    Bytes,
    Complex,
    Complex128,
    InOut,
    Input,
    Int16,
    Int32,
    Operator,
    Output,
    Param,
    Real,
    Real64,
    operator,
    param,
)
from onbeat._pipeline import Node, Pipeline, Plan, Port, load
from onbeat._record import Record
from onbeat._run import Miss, Run
from onbeat._tools import bench, doctor, noise
from onbeat._work_queue import WorkQueue

#: The operator wants its next step when its inputs have messages.
WAIT = Step.Wait()
#: The operator wants its next step as soon as its outputs have room.
AGAIN = Step.Again()
#: The operator is finished.
DONE = Step.Done()

__all__ = [
    "AGAIN",
    "Bytes",
    "Complex",
    "Complex128",
    "Context",
    "DONE",
    "DataLost",
    "Emitter",
    "Error",
    "InOut",
    "Input",
    "Int16",
    "Int32",
    "Kind",
    "LimitExceeded",
    "Miss",
    "Node",
    "NotObtained",
    "Operator",
    "OperatorError",
    "Output",
    "Param",
    "Pipeline",
    "PipelineError",
    "Plan",
    "Port",
    "Real",
    "Real64",
    "Record",
    "Run",
    "Step",
    "WAIT",
    "WorkQueue",
    "__version__",
    "bench",
    "doctor",
    "keep",
    "kinds",
    "load",
    "noise",
    "operator",
    "param",
    "until",
]
