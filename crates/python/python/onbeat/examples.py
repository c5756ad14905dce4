"""Small operators, as examples."""

from __future__ import annotations

from typing import Any

import numpy as np

from onbeat import Context, Input, Operator, Output, Param, Real, param


class Gain(Operator):
    """Amplifies samples."""

    x: Input[Real]
    y: Output[Real]
    gain: Param[float] = param(0.0, unit="dB", live=True, doc="Gain.")

    def step(self, cx: Context, x: Any, y: Any) -> None:
        """Multiplies the samples."""
        np.multiply(x, np.float32(10 ** (self.gain / 20)), out=y)
