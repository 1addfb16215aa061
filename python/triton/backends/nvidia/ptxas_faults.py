"""What ptxas is known to miscompile, and the PTX that it compiles right instead.

Before CUDA 13.1 (seen with 12.9.86, 13.0.48 and 13.0.88; right from 13.1.115 on) ptxas takes an
addition of packed 16-bit integers, of whose result only one half is used, for the addition of
another constant: `add.s16x2 x, y, 0x00070000` with only the upper half of x used adds 0.  LLVM
makes such additions of any 16-bit integers on sm_90 and later.

The file lies where triton_key() reads it: what it does is part of the cubins' cache keys.
"""

from __future__ import annotations

import re

_FIXED = (13, 1)
# Comments and strings, in which nothing is an instruction; blanks may stand between all tokens.
_NO_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|"[^"\n]*"', re.DOTALL)
_OPERAND = r"[\w$%]+(?:\s*\.\s*[xyzwrgba]\b)?"
_PACKED_ADD = re.compile(
    r"(?P<guard>@\s*(?:!\s*)?[\w$%]+\s+)?\badd\s*\.\s*[su]16x2\s+"
    rf"(?P<result>{_OPERAND})\s*,\s*(?P<a>{_OPERAND})\s*,\s*(?P<b>{_OPERAND})\s*;"
)


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])


def _by_halves(match: re.Match[str], half: str) -> str:
    """Return the two additions that stand for `match`, in registers whose names begin so."""
    result, a, b = match.group("result", "a", "b")
    guard = match["guard"] or ""
    return (
        f"{{ .reg .b16 {half}<4>; "
        f"mov.b32 {{{half}0, {half}1}}, {a}; mov.b32 {{{half}2, {half}3}}, {b}; "
        f"add.s16 {half}0, {half}0, {half}2; add.s16 {half}1, {half}1, {half}3; "
        f"{guard}mov.b32 {result}, {{{half}0, {half}1}}; }}"
    )


def avoid(ptx: str, version: str) -> str:
    """Return PTX with the values of `ptx` that ptxas of release `version`, '12.9' say, gets right.

    Packed additions become two additions each; nothing is changed where ptxas has no fault.
    """
    if tuple(map(int, version.split(".")[:2])) >= _FIXED:
        return ptx
    half = "%half"
    while half in ptx:
        half += "_"
    code = _NO_CODE.sub(_blank, ptx)  # of the same length
    pieces, end = [], 0
    for match in _PACKED_ADD.finditer(code):
        pieces += [ptx[end : match.start()], _by_halves(match, half)]
        end = match.end()
    return "".join([*pieces, ptx[end:]])
