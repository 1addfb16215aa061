"""The external functions that compiled kernels call: vprintf and __assertfail."""

from __future__ import annotations

import re

import numpy as np

from . import memory as mm
from .errors import PtxSimError

_FORMAT = re.compile(r"%([-+ #0]*\d*(?:\.\d+)?)(hh|h|ll|l|)([diuxXcsfeEgGp%])")


def _param(S, var, t):
    store = S.regs.params[var.offset]
    return int.from_bytes(store[t if store.shape[0] > 1 else 0].tobytes(), "little")


def _bytes(S, addr, size, t):
    sel = np.array([t])
    return bytes(
        int(mm.read(S, "generic", np.array([addr + k], np.int64), 1, sel)[0]) for k in range(size)
    )


def _string(S, addr, t):
    out = bytearray()
    while True:
        b = _bytes(S, addr + len(out), 1, t)
        if b == b"\0":
            return out.decode("utf-8", "replace")
        out += b


def _line(S, t, fmt, base):
    """The text that thread t prints: values lie in memory at `base`, each aligned to its size."""
    offset = 0

    def field(m):
        nonlocal offset
        flags, length, kind = m.groups()
        if kind == "%":
            return "%"
        size = 8 if kind in "feEgGsp" or "l" in length else 4
        offset = (offset + size - 1) // size * size
        raw = _bytes(S, base + offset, size, t)
        offset += size
        if kind in "feEgG":
            return f"%{flags}{kind}" % np.frombuffer(raw, np.float64)[0]
        value = int.from_bytes(raw, "little", signed=kind in "di")
        if kind == "s":
            return f"%{flags}s" % _string(S, value, t)
        if kind == "p":
            return hex(value)
        return f"%{flags}{'d' if kind == 'u' else kind}" % value

    return _FORMAT.sub(field, fmt)


def _vprintf(S, mask, args, rets):
    """One line a thread into the launch's `printed` list."""
    fmt, values = args
    for t in range(S.threads) if mask is None else np.flatnonzero(mask):
        S.printed.append(_line(S, t, _string(S, _param(S, fmt, t), t), _param(S, values, t)))
    for var in rets:
        S.regs.params[var.offset][:] = 0


def _assertfail(S, mask, args, rets):
    threads = range(S.threads) if mask is None else np.flatnonzero(mask)
    for t in threads:
        text = _string(S, _param(S, args[0], t), t)
        S.fail(PtxSimError, f"device assertion failed: {text}", None, t)


EXTERNS = {"vprintf": _vprintf, "__assertfail": _assertfail}
