"""What ptxas makes of scans, for sm_90, where the PTX does not tell."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

TOOLS = Path(triton.__file__).parent / "backends/nvidia/bin"


@triton.jit
def affine(a1, b1, a2, b2):
    return a1 * a2, a2 * b1 + b2


@triton.jit
def recurrence(a_ptr, b_ptr, h_ptr, size, REVERSE: tl.constexpr):
    # Neighbours in memory belong to neighbouring lanes, so a thread has 16 slots.
    i = tl.arange(0, 2048)
    for start in range(0, size, 2048):
        mask = start + i < size
        a = tl.load(a_ptr + 3 * (start + i), mask, other=1.0)
        b = tl.load(b_ptr + 3 * (start + i), mask, other=0.0)
        _, h = tl.associative_scan((a, b), 0, affine, reverse=REVERSE)
        tl.store(h_ptr + 3 * (start + i), h, mask)


def opcodes(cubin: bytes, folder: Path) -> list[str]:
    """The opcodes of a kernel's machine code, in its order."""
    path = folder / "kernel.cubin"
    path.write_bytes(cubin)
    command = [TOOLS / "cuobjdump", "-sass", path]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return re.findall(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+ )?([A-Z0-9]+)", text, re.MULTILINE)


@pytest.mark.parametrize("reverse", [False, True])
def test_loads_of_all_slots_are_in_flight_together(reverse, tmp_path):
    """ptxas does not wait for the loads of one slot before it begins the next."""
    source = ASTSource(
        recurrence,
        signature={"a_ptr": "*fp32", "b_ptr": "*fp32", "h_ptr": "*fp32", "size": "i32"}
        | {"REVERSE": "constexpr"},
        constexprs={"REVERSE": reverse},
    )
    kernel = triton.compile(source, target=GPUTarget("cuda", 90, 32))
    code = opcodes(kernel.asm["cubin"], tmp_path)
    assert code.count("LDG") == 32 and code.count("SHFL") >= 16 * 5 * 2
    assert code[: code.index("SHFL")].count("LDG") >= 16
