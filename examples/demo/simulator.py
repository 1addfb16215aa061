"""Run a compiled kernel in the PTX simulator that the wheel brings, where there is no GPU."""

from __future__ import annotations

import numpy as np
from triton.tools.ptx_sim import run_compiled


class Simulator:
    """Has the interface of cuda.Device.  Kernels have to be compiled for `capability`."""

    name = "the PTX simulator"
    capability = 90

    def run(
        self, compiled, inputs: tuple[np.ndarray, ...], outputs: tuple[np.ndarray, ...]
    ) -> None:
        """Run one block of a kernel whose arguments are the arrays' pointers; fills `outputs`.

        Raises PtxSimError where the kernel reads or writes memory wrongly, or its threads race.
        """
        run_compiled(compiled, 1, [*(x.copy() for x in inputs), *outputs])
