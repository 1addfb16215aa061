"""Run a compiled kernel on the first CUDA device through libcuda alone: the demo needs no torch."""

from __future__ import annotations

import ctypes

import numpy as np

_MAJOR, _MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*
_MAX_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES


class CudaError(Exception):
    """A call of the CUDA driver failed; the text names the call and the driver's code."""


class Device:
    """The first CUDA device, with a context of its own.  Raises CudaError where there is none."""

    def __init__(self) -> None:
        try:
            self._driver = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise CudaError(f"no CUDA driver: {error}") from None
        self._call("cuInit", 0)
        device = ctypes.c_int()
        self._call("cuDeviceGet", ctypes.byref(device), 0)
        major, minor = ctypes.c_int(), ctypes.c_int()
        self._call("cuDeviceGetAttribute", ctypes.byref(major), _MAJOR, device)
        self._call("cuDeviceGetAttribute", ctypes.byref(minor), _MINOR, device)
        self.capability = major.value * 10 + minor.value
        name = ctypes.create_string_buffer(256)
        self._call("cuDeviceGetName", name, 256, device)
        self.name = name.value.decode()
        self._context = ctypes.c_void_p()
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(self._context), device)
        self._call("cuCtxSetCurrent", self._context)

    def _call(self, name: str, *arguments: object) -> None:
        if code := getattr(self._driver, name)(*arguments):
            raise CudaError(f"{name} failed with code {code}")

    def run(
        self, compiled, inputs: tuple[np.ndarray, ...], outputs: tuple[np.ndarray, ...]
    ) -> None:
        """Run one block of a kernel whose arguments are the arrays' pointers; fills `outputs`."""
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self._call("cuModuleLoadData", ctypes.byref(module), compiled.asm["cubin"])
        pointers = []
        try:
            name = compiled.metadata.name.encode()
            self._call("cuModuleGetFunction", ctypes.byref(function), module, name)
            shared = compiled.metadata.shared
            self._call("cuFuncSetAttribute", function, _MAX_DYNAMIC_SHARED, shared)
            for array in (*inputs, *outputs):
                pointer = ctypes.c_uint64()
                self._call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(array.nbytes))
                pointers.append(pointer)
                data, size = array.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(array.nbytes)
                self._call("cuMemcpyHtoD_v2", pointer, data, size)
            # Triton appends two pointers to scratch memory, which these kernels do not use.
            arguments = [*pointers, ctypes.c_uint64(0), ctypes.c_uint64(0)]
            packed = (ctypes.c_void_p * len(arguments))(*(ctypes.addressof(a) for a in arguments))
            threads = compiled.metadata.num_warps * 32
            self._call(
                "cuLaunchKernel", function, 1, 1, 1, threads, 1, 1, shared, None, packed, None
            )
            self._call("cuCtxSynchronize")
            for array, pointer in zip(outputs, pointers[len(inputs) :], strict=True):
                data, size = array.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(array.nbytes)
                self._call("cuMemcpyDtoH_v2", data, pointer, size)
        finally:
            for pointer in pointers:
                self._driver.cuMemFree_v2(pointer)
            self._driver.cuModuleUnload(module)
