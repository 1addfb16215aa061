"""What ptxas is known to miscompile, and the PTX that it compiles right instead.

Before CUDA 13.1 (seen with 12.9.86, 13.0.48 and 13.0.88; right from 13.1.115 on) ptxas takes an
addition of packed 16-bit integers, of whose result only one half is used, for the addition of
another constant: `add.s16x2 x, y, 0x00070000` with only the upper half of x used adds 0.  LLVM
makes such additions of any 16-bit integers on sm_90 and later.
"""

from __future__ import annotations

import re

_FIXED = (13, 1)
_PACKED_ADD = re.compile(
    r"(?P<guard>@!?[\w$%]+\s+)?\badd\.[su]16x2\s+"
    r"(?P<result>[\w$%]+)\s*,\s*(?P<a>[\w$%]+)\s*,\s*(?P<b>[\w$%]+)\s*;"
)


def _by_halves(match: re.Match[str]) -> str:
    result, a, b = match.group("result", "a", "b")
    guard = match["guard"] or ""
    steps = (
        f"mov.b32 {{%xa0, %xa1}}, {a};",
        f"mov.b32 {{%xb0, %xb1}}, {b};",
        "add.s16 %xa0, %xa0, %xb0;",
        "add.s16 %xa1, %xa1, %xb1;",
        f"mov.b32 {result}, {{%xa0, %xa1}};",
    )
    return "{ .reg .b16 %xa<2>, %xb<2>; " + " ".join(guard + step for step in steps) + " }"


def avoid(ptx: str, version: str) -> str:
    """Return PTX with the values of `ptx` that ptxas of release `version`, '12.9' say, gets right.

    Packed additions become two additions each; nothing is changed where ptxas has no fault.
    """
    if tuple(map(int, version.split(".")[:2])) >= _FIXED:
        return ptx
    return _PACKED_ADD.sub(_by_halves, ptx)
