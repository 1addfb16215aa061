"""What the machine code of a scan costs, without a GPU: `python benchmarks/sass.py [ROW TEXT]`.

Prints, for each row of the scan suite whose name contains the text, the opcodes of the loop and
two bounds of its speed (see NOTES.md); --listing adds the loop's code, --markdown prints a table
of all with both lowerings.  Needs triton with its cuobjdump.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import suites
from stats import geomean

# H200: multiprocessors and cycles a second at the boost clock.
MULTIPROCESSORS, HERTZ = 132, 1.98e9
# Warp instructions that a multiprocessor issues in a cycle.
ISSUES = 4
# Pipe of shared memory and shuffles: one wavefront (128 bytes) a cycle and multiprocessor.
WAVEFRONTS = 1
_LINE = re.compile(r"^\s+/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;")
_BACKWARDS = re.compile(r"\bBRA\S*.*?\b0x([0-9a-f]+)")
_COUNTER = re.compile(r"^(?:@!?U?P\w+ )?U?IADD3 (U?R\d+), \1, (-?0x[0-9a-f]+), U?RZ$")


class SassError(Exception):
    """The machine code is not what this tool understands; the text says what."""


@dataclass(frozen=True)
class Loop:
    """The loop of a kernel: its instructions, and how many rounds of scans one pass makes."""

    code: list[str]
    rounds: int

    @property
    def opcodes(self) -> Counter:
        return Counter(_opcode(line) for line in self.code)

    @property
    def instructions(self) -> float:
        """Warp instructions a round."""
        return len(self.code) / self.rounds

    @property
    def wavefronts(self) -> float:
        """Wavefronts a round and warp: a shuffle is one, a shared access one for each 32 bits of a
        thread (no bank conflicts; a broadcast counts like any other access)."""
        return sum(n * _wavefronts(op) for op, n in self.opcodes.items()) / self.rounds

    def bound(self, row: suites.Row) -> tuple[float, float]:
        """10**12 scanned elements a second that each of the two ceilings allows."""
        elements = row.block / row.num_warps * MULTIPROCESSORS * HERTZ / 1e12
        shared = elements * WAVEFRONTS / self.wavefronts if self.wavefronts else float("inf")
        return elements * ISSUES / self.instructions, shared


def _opcode(line: str) -> str:
    return re.sub(r"^@!?U?P\w+ ", "", line).split()[0]


def _wavefronts(opcode: str) -> int:
    parts = opcode.split(".")
    if parts[0] == "SHFL":
        return 1
    if parts[0] not in ("LDS", "STS"):
        return 0
    return 4 if "128" in parts else 2 if "64" in parts else 1


def disassemble(cubin: bytes) -> list[tuple[int, str]]:
    """(address, instruction) of a kernel's machine code."""
    import triton

    tool = Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        command = [str(tool), "-sass", file.name]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    matches = (_LINE.match(line) for line in text.splitlines())
    return [(int(m[1], 16), re.sub(r"\s+", " ", m[2])) for m in matches if m]


def find_loop(code: list[tuple[int, str]]) -> Loop:
    """The longest loop of a kernel, which counts rounds with one constant step."""
    best: tuple[int, int] = (0, -1)
    for address, line in code:
        # The last instruction is a branch to itself.
        if (m := _BACKWARDS.search(line)) and (start := int(m[1], 16)) < address:
            best = max(best, (start, address), key=lambda span: span[1] - span[0])
    body = [line for address, line in code if best[0] <= address <= best[1]]
    if not body:
        raise SassError("the machine code has no loop")
    steps = [abs(int(m[2], 16)) for line in body if (m := _COUNTER.match(line))]
    if len(steps) != 1:
        raise SassError(f"the loop has {len(steps)} counters with a constant step, not one")
    return Loop(body, steps[0])


def loop_of(row: suites.Row, mode: str, native: bool = True) -> Loop:
    """Compile a row's kernel for sm_90 and find its loop; `native` chooses the lowering."""
    import triton

    with triton.knobs.scan.scope():
        triton.knobs.scan.native = native
        return find_loop(disassemble(suites.compile_row(row, mode).asm["cubin"]))


def describe(row: suites.Row, mode: str, native: bool, listing: bool) -> str:
    loop = loop_of(row, mode, native)
    issue, shared = loop.bound(row)
    lowering = "native" if native else "upstream"
    opcodes = "  ".join(f"{op} {n}" for op, n in loop.opcodes.most_common())
    lines = [
        f"{row} {mode} {lowering}: a pass makes {loop.rounds} rounds; a round has "
        f"{loop.instructions:.1f} instructions, {loop.wavefronts:.1f} wavefronts a warp",
        f"  at most {issue:.2f} (issue), {shared:.2f} (shared unit) 10^12 elements/s",
        f"  {opcodes}",
    ]
    return "\n".join(lines + [f"    {line}" for line in loop.code if listing])


def table(rows: list[suites.Row]) -> str:
    """A Markdown table: instructions / wavefronts a round and warp, and the lower of the two
    bounds with its name, both lowerings and directions; then the means of the bounds' ratios."""
    lines = [
        "| row | ours forward | ours reverse | upstream forward | upstream reverse |",
        "|---|---|---|---|---|",
    ]
    bounds: dict = {}
    for row in rows:
        cells = []
        for native in (True, False):
            for mode in suites.DIRECTIONS:
                loop = loop_of(row, mode, native)
                issue, shared = loop.bound(row)
                bounds.setdefault((native, mode), []).append(min(issue, shared))
                binds = "issue" if issue <= shared else "shared"
                cells.append(
                    f"{loop.instructions:.0f} / {loop.wavefronts:.0f}: "
                    f"{min(issue, shared):.2f} {binds}"
                )
        lines.append(f"| {row} | " + " | ".join(cells) + " |")
    lines.append("")
    for mode in suites.DIRECTIONS:
        pairs = zip(bounds[True, mode], bounds[False, mode], strict=True)
        ratios = [ours / upstream for ours, upstream in pairs]
        lines.append(
            f"Predicted ours over upstream, {mode}: geometric mean {geomean(ratios):.2f}, "
            f"least {min(ratios):.2f}."
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("text", nargs="?", default="", help="only rows whose name contains this")
    parser.add_argument("--listing", action="store_true", help="print the loop's code")
    parser.add_argument("--markdown", action="store_true", help="one table of both lowerings")
    parser.add_argument("--upstream", action="store_true", help="upstream's lowering")
    args = parser.parse_args()
    os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")
    rows = [row for row in suites.SCAN if args.text in str(row)]
    if args.markdown:
        print(table(rows))
        return
    for row in rows:
        for mode in suites.DIRECTIONS:
            print(describe(row, mode, not args.upstream, args.listing))


if __name__ == "__main__":
    main()
