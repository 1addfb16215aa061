"""A pytest plugin: lets tests of Triton's sources compile for sm_90 without a GPU and torch.

torch is a module in which every name is another such module, but for the GPU's capability; the
active driver names a target and can do nothing else.  A test that needs more of either fails.
"""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

from triton.backends.compiler import GPUTarget
from triton.runtime import driver


class _Torch(ModuleType):
    __path__: tuple[str, ...] = ()

    def __getattr__(self, name: str) -> ModuleType:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Torch(f"{self.__name__}.{name}")


class _Driver:
    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", 90, 32)


if importlib.util.find_spec("torch") is None:
    torch = sys.modules["torch"] = _Torch("torch")
    torch.cuda = _Torch("torch.cuda")
    torch.cuda.get_device_capability = lambda *_: (9, 0)
    torch.version = _Torch("torch.version")
    torch.version.cuda = "12.8"
driver.set_active(_Driver())
