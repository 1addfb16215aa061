"""backends/nvidia/ptxas_faults.py: what older ptxas get wrong, and what they get instead."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
import triton
import triton.language as tl
from ptx_sim_harness import execute, integers, module
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia import ptxas_faults
from triton.compiler import ASTSource

N = 256
A, B = integers(np.uint32, N, 1), integers(np.uint32, N, 2)
SUM = (A.view(np.int16) + B.view(np.int16)).view(np.uint32)


def machine_code(ptx: str, folder: Path) -> str:
    """The machine code that the ptxas for GPUs before sm_90, of CUDA 12.9, makes for sm_90."""
    ptxas = knobs.nvidia.ptxas
    assert ptxas.version == "12.9"
    (folder / "kernel.ptx").write_text(ptx)
    cubin = folder / "kernel.cubin"
    command = [ptxas.path, "-arch=sm_90a", folder / "kernel.ptx", "-o", cubin]
    subprocess.run(command, check=True)
    return disassembled(cubin)


def disassembled(cubin: Path) -> str:
    command = [Path(knobs.nvidia.ptxas.path).with_name("cuobjdump"), "-sass", cubin]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


# Adds 7 to a 16-bit number in the upper half of a register.
UPPER_HALF = module(
    """
    .reg .b64 %p; .reg .b32 %x<3>; .reg .b16 %h<3>; .reg .pred %q; .reg .v2 .b32 %v;
    ld.param.u64 %p, [p0];
    ld.global.b16 %h0, [%p];
    mov.b32 %x0, {%h1, %h0};
    mov.b32 %x1, 0x70000;
    mov.b32 %v.x, 0x70000;
    setp.gt.s16 %q, %h0, 0;
    add.s16x2 %x2, %x0, %x1;
    mov.b32 {_, %h2}, %x2;
    st.global.b16 [%p], %h2;
    ret;""",
    ".param .u64 p0",
)


def test_ptxas_loses_the_constant(tmp_path):
    """Once this fails, ptxas_faults.py is needed no more."""
    code = machine_code(UPPER_HALF, tmp_path)
    assert re.search(r"VIADD.16x2 \w+, \w+, 0x0 ", code) and "0x7 " not in code


# Other ways to write it, as inline assembly may: names, guards, comments and blanks.
SPELLINGS = {
    "plain": "add.s16x2 %x2, %x0, %x1;",
    "unsigned": "add.u16x2 %x2, %x0, %x1;",
    "blanks": "add .s16x2 %x2 , %x0\n,\n%x1 ;",
    "others on the line": "mov.b32 %x2, %x0; { add.s16x2 %x2, %x2, %x1; } mov.b32 %x2, %x2;",
    "label": "L: add.s16x2 %x2, %x0, %x1;",
    "element of a vector": "add.s16x2 %x2, %x0, %v.x;",
    "result in a vector": "add.s16x2 %v.y, %x0, %x1; mov.b32 %x2, %v.y;",
    "guard": "mov.b32 %x2, %x0; @%q add.s16x2 %x2, %x0, %x1;",
    "blank in the guard": "mov.b32 %x2, %x0; @! %q add.s16x2 %x2, %x0, %x1;",
    "comment after the guard": "mov.b32 %x2, %x0; @%q /* then */ add.s16x2 %x2, %x0, %x1;",
    "comment like a guard": "// only where @%q\nadd.s16x2 %x2, %x0, %x1;",
    "comment among operands": 'add.s16x2 %x2, /* a " */ %x0, // b\n %x1;',
    "names like ours": "{ .reg .b32 %half0; mov.b32 %half0, %x1; add.s16x2 %x2, %x0, %half0; }",
    "guard named like ours": """{ .reg .pred %half1; mov.pred %half1, %q; mov.b32 %x2, %x0;
        @%half1 add.s16x2 %x2, %x0, %x1; }""",
}


@pytest.mark.parametrize("spelling", SPELLINGS.values(), ids=SPELLINGS)
def test_ptxas_keeps_the_constant_of_two_additions(spelling, tmp_path):
    ptx = UPPER_HALF.replace("add.s16x2 %x2, %x0, %x1;", spelling)
    machine_code(ptx, tmp_path)  # it is PTX
    code = machine_code(ptxas_faults.avoid(ptx, "12.9"), tmp_path)
    assert re.search(r"IADD\S* \w+, \w+, 0x7\b", code) and "16x2" not in code


@pytest.mark.parametrize("signedness", "su")
@pytest.mark.parametrize("version", ["12.8", "12.9", "13.0", "13.1"])
def test_sums_are_the_same(signedness, version):
    body = ptxas_faults.avoid(f"add.{signedness}16x2 %d, %a, %b;", version)
    assert ("16x2" in body) == (version == "13.1")
    got = execute(body, {"a": A, "b": B}, {"d": np.uint32})["d"]
    np.testing.assert_array_equal(got, SUM)


@pytest.mark.parametrize("guard", ["@%p", "@!%p"])
def test_guard(guard):
    """A thread whose guard is false keeps the old value, also where it is an operand."""
    body = ptxas_faults.avoid(
        f"setp.lt.s32 %p, %a, 0;\nmov.b32 %d, %a;\n{guard} add.s16x2\t%d , %d, %b ;", "13.0"
    )
    got = execute(body, {"a": A, "b": B}, {"d": np.uint32}, regs=".reg .pred %p;")["d"]
    added = (A.view(np.int32) < 0) == (guard == "@%p")
    np.testing.assert_array_equal(got, np.where(added, SUM, A))


@pytest.mark.parametrize("version", ["13.1", "13.4", "13.10", "14.0"])
def test_nothing_changes_where_ptxas_is_right(version):
    assert ptxas_faults.avoid(UPPER_HALF, version) == UPPER_HALF


def test_other_packed_instructions_stay():
    text = """
        max.s16x2 %a, %b, %c; add.f16x2 %a, %b, %c; add.rn.bf16x2 %a, %b, %c; add.s16 %d, %e, 1;
        // add.s16x2 %a, %b, %c;
        /* add.s16x2 %a, %b, %c; */
        .file 1 "add.s16x2 %a, %b, %c;" """
    assert ptxas_faults.avoid(text, "12.9") == text


@triton.jit
def shifted(x, n, T: tl.constexpr):
    # LLVM adds the numbers of neighbouring registers in pairs
    i = tl.arange(0, T)
    a = tl.load(x + i)
    for _ in range(n):
        a = (a.to(tl.int32) * 3 + 40000).to(tl.int16)
    tl.store(x + i, a)


@pytest.mark.parametrize("tool, keeps", [("ptxas", False), ("ptxas-blackwell", True)])
def test_compiler_knows_its_ptxas(tool, keeps, tmp_path, monkeypatch):
    """A kernel is compiled to packed additions, unless the ptxas that is set gets them wrong."""
    path = str(Path(knobs.nvidia.ptxas.path).with_name(tool))
    for name in ("TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH"):
        monkeypatch.setenv(name, path)
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    source = ASTSource(
        shifted,
        signature={"x": "*i16", "n": "i32", "T": "constexpr"},
        constexprs={"T": 1024},
        attrs={(0,): [["tt.divisibility", 16]]},
    )
    kernel = triton.compile(source, target=GPUTarget("cuda", 90, 32))
    assert "add.s16x2" in kernel.asm["ptx"]
    cubin = tmp_path / "kernel.cubin"
    cubin.write_bytes(kernel.asm["cubin"])
    assert ("VIADD.16x2" in disassembled(cubin)) == keeps
