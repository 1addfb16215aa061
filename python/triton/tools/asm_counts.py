"""Count what a scan costs in the assembly that the backends emit."""

from __future__ import annotations

import re
from dataclasses import dataclass

_PTX_PREFIX = re.compile(r"^[\s{}]*(?:@!?%\w+\s+)?")
_PTX_OPCODE = re.compile(r"[a-z][\w.:]*")
_AMD_INSTRUCTION = re.compile(
    r"^\s+([vs]_\w+|ds_\w+|global_\w+|buffer_\w+|flat_\w+)\b.*$", re.MULTILINE
)
_PTX_BARRIERS = ("bar.sync", "barrier.")
_AMD_INTRINSIC = re.compile(r"call [^@\n]*@llvm\.amdgcn\.([\w.]+)")
# Each by its names in assembly and in LLVM IR.  Readfirstlane is no move: its result is the same in
# all lanes.
_AMD_MOVES = {
    "ds_bpermute": ("ds_bpermute", "ds.bpermute"),
    "ds_swizzle": ("ds_swizzle", "ds.swizzle"),
    "permlane": ("v_permlane", "permlane"),
    "readlane": ("v_readlane", "readlane"),
}
_AMD_SHUFFLES = ("ds_bpermute", "ds_swizzle", "ds_permute", "v_permlane", "v_readlane")


@dataclass(frozen=True)
class Counts:
    """Instructions of one kernel: all, shuffles between lanes, barriers, shared-memory accesses."""

    instructions: int
    shuffles: int
    barriers: int
    shared: int


def ptx_opcodes(ptx: str) -> list[str]:
    """Return the opcode of each instruction of the PTX text, in order; directives are left out."""
    opcodes = []
    # Instructions end with a semicolon; labels, .loc and blank lines before one have lines of their
    # own.
    for statement in re.sub(r"//.*", "", ptx).split(";"):
        for line in statement.splitlines():
            if match := _PTX_OPCODE.match(_PTX_PREFIX.sub("", line)):
                opcodes.append(match.group())
                break
    return opcodes


def count_ptx(ptx: str) -> Counts:
    """Count in PTX text."""
    opcodes = ptx_opcodes(ptx)
    return Counts(
        instructions=len(opcodes),
        shuffles=sum(op.startswith("shfl.") for op in opcodes),
        barriers=sum(op.startswith(_PTX_BARRIERS) for op in opcodes),
        shared=sum(op.startswith(("ld.shared", "st.shared")) for op in opcodes),
    )


def count_amdgcn(asm: str) -> Counts:
    """Count in AMD assembly text; an instruction with a DPP modifier counts as a shuffle."""
    lines = [(m.group(1), m.group(0)) for m in _AMD_INSTRUCTION.finditer(re.sub(r";.*", "", asm))]
    return Counts(
        instructions=len(lines),
        shuffles=sum(op.startswith(_AMD_SHUFFLES) or "_dpp" in op for op, _ in lines),
        barriers=sum(op.startswith("s_barrier") for op, _ in lines),
        shared=sum(
            op.startswith(("ds_read", "ds_write", "ds_load", "ds_store")) for op, _ in lines
        ),
    )


def amd_lane_moves(asm: str) -> dict[str, int]:
    """Count in AMD assembly text, by kind, the instructions that read another lane.

    "dpp moves" do nothing else; "dpp operands" are of other instructions, in which LLVM has folded
    a move: in each of those that use it, so that there may be more of them than moves before.
    """
    ops = [m.group(1) for m in _AMD_INSTRUCTION.finditer(re.sub(r";.*", "", asm))]
    counts = {name: sum(op.startswith(a) for op in ops) for name, (a, _) in _AMD_MOVES.items()}
    counts["dpp moves"] = sum(op.startswith("v_mov_b") and "_dpp" in op for op in ops)
    counts["dpp operands"] = sum("_dpp" in op for op in ops) - counts["dpp moves"]
    return counts


def amd_lane_moves_in_llvm_ir(llir: str) -> dict[str, int]:
    """Count the same in LLVM IR for AMD, where every move is a call: "dpp" are all with DPP."""
    names = _AMD_INTRINSIC.findall(llir)
    counts = {name: sum(n.startswith(i) for n in names) for name, (_, i) in _AMD_MOVES.items()}
    return counts | {"dpp": sum(n.startswith("update.dpp") for n in names)}
