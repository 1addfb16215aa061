"""Compiles a program, runs it in the simulator and compares it with the oracle."""

from __future__ import annotations

import tempfile

import numpy as np
from triton import native_scan
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.compiler.compiler import make_backend
from triton.tools.ptx_sim import Scratch, from_bf16, launch, to_bf16

from .backends import NUMPY, is_float
from .layouts import Machine
from .oracle import fold
from .programs import Program, Scan, write, write_functions
from .steps import Evaluator


def _backend(machine: Machine):
    kind, arch = machine.target.split(":")
    return make_backend(GPUTarget(kind, int(arch) if kind == "cuda" else arch, machine.lanes))


class Mismatch(AssertionError):
    """A scan gave a wrong value; the text has the first of them."""


def parse(text: str, machine: Machine):
    """Return the module in a context of its own, with the dialects of the machine's target."""
    backend = _backend(machine)
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    with tempfile.NamedTemporaryFile("w", suffix=".mlir") as file:
        file.write(text)
        file.flush()
        module = ir.parse_mlir_module(file.name, context)
    module.context = context
    return module


def compile_program(program: Program, last: str) -> tuple[str, dict]:
    """Return the text of the stage `last` ("ptx" or "amdgcn") and the kernel's metadata."""
    backend = _backend(program.machine)
    module = parse(write(program), program.machine)
    options = backend.parse_options(
        {"num_warps": program.machine.warps, "num_ctas": program.machine.ctas}
    )
    stages: dict = {}
    if native_scan.is_built_in():  # that Triton has one language
        backend.add_stages(stages, options)
    else:
        from triton.backends.compiler import Language

        backend.add_stages(stages, options, Language.TRITON)
    names = list(stages)
    metadata = dict(options.__dict__)
    for name in names[names.index("ttgir") + 1 : names.index(last) + 1]:
        module = stages[name](module, metadata)
    return module, metadata


def _added(scan: Scan, one: list[np.ndarray], other: list[np.ndarray]) -> list[np.ndarray]:
    """Return what adding up means for the operands: the maximum of floats, xor of i1."""
    sums = []
    for kind, a, b in zip(scan.operator.kinds, one, other, strict=True):
        if is_float(kind):
            sums.append(np.maximum(a, b))
        else:
            sums.append(a ^ b if kind == "i1" else a + b)
    return sums


def _once(scan: Scan, values: list[np.ndarray]) -> list[np.ndarray]:
    """Return what the scan's form makes of the operands."""
    if scan.form == "flip":
        return [np.flip(a, scan.axis) for a in values]
    if scan.form == "between flips":
        return fold(scan.operator, values, scan.axis, not scan.reverse)
    results = fold(scan.operator, values, scan.axis, scan.reverse)
    if scan.form == "twice":
        other = fold(scan.operator, values, scan.axis, not scan.reverse)
        results = _added(scan, results, other)
    return results


def expected(scan: Scan, operands: list[np.ndarray]) -> list[np.ndarray]:
    """Return what the scan and the loop around it give for buffers of scan.num_tensors tensors."""
    if scan.loop == "reload":
        totals = [np.zeros(scan.layout.shape, NUMPY[kind]) for kind in scan.operator.kinds]
        for trip in range(scan.trips):
            totals = _added(scan, totals, _once(scan, [a[trip] for a in operands]))
        return totals
    values = [a[0] for a in operands]
    times = {"none": 1, "if": int(scan.trips > 1)}.get(scan.loop, scan.trips)
    for _ in range(times):
        values = _once(scan, values)
    return values


def _to_memory(values: np.ndarray, kind: str) -> np.ndarray:
    if kind == "bf16":
        return to_bf16(values)
    return values.astype(np.int8) if kind == "i1" else values.copy()


def _from_memory(values: np.ndarray, kind: str) -> np.ndarray:
    return from_bf16(values) if kind == "bf16" else values


def _poison(shape, like: np.ndarray) -> np.ndarray:
    result = np.empty(shape, like.dtype)
    result.view(np.uint8)[...] = 0xA5
    return result


def run(program: Program) -> None:
    """Run the program.  Raises Mismatch, or what the compiler or the simulator raises."""
    ptx, metadata = compile_program(program, "ptx")
    arguments: list = []
    checks = []
    for scan in program.scans:
        kinds, shape = scan.operator.kinds, scan.layout.shape
        rng = np.random.default_rng(scan.seed)
        operands = scan.operator.sample(rng, (scan.num_tensors, *shape), shape[scan.axis])
        inputs = [_to_memory(a, kind) for a, kind in zip(operands, kinds, strict=True)]
        for a in inputs:
            a.flags.writeable = False
        outputs = [_poison((scan.layout.copies, *shape), a) for a in inputs]
        arguments += [*inputs, *outputs]
        arguments += [NUMPY[kind].type(value) for kind, value in scan.operator.captured]
        if scan.loop != "none" and not scan.is_static:
            arguments.append(np.int32(scan.trips))
        checks.append((scan, operands, outputs))
    # The source base's Triton has one of the two.
    names = ("global_scratch_size", "profile_scratch_size")[: 1 if native_scan.is_built_in() else 2]
    hidden = [Scratch(metadata.get(name, 0) * program.machine.ctas) for name in names]
    launch(
        ptx,
        1,
        [*arguments, *hidden],
        num_warps=metadata["num_warps"],
        shared_bytes=metadata["shared"],
        cluster=program.machine.ctas,
        equal_writes=native_scan.is_built_in(),  # that Triton stores a tensor's every register
    )
    for number, (scan, operands, outputs) in enumerate(checks):
        compare(number, scan, expected(scan, operands), outputs)


def run_steps(program: Program) -> None:
    """Lower the scans by themselves and evaluate that, thread by thread (steps.py).

    For targets without a simulator.  Scans of blocked layouts are passed over, loops left out.
    Raises Mismatch, StepError or what the compiler raises.
    """
    machine = program.machine
    module = parse(write_functions(program), machine)
    pipeline = ir.pass_manager(module.context)
    native_scan.add_pass(pipeline, "lower_scan")
    native_scan.run_reporting(pipeline, module, "fuzz")
    evaluator = Evaluator(module.str_nodebug(), machine.lanes, machine.warps)
    for number, scan in enumerate(program.scans):
        if "#ttg.blocked" in scan.layout.encoding:
            continue
        shape, operator = scan.layout.shape, scan.operator
        operands = operator.sample(np.random.default_rng(scan.seed), shape, shape[scan.axis])
        captured = [NUMPY[kind].type(value) for kind, value in operator.captured]
        with np.errstate(all="ignore"):
            results = evaluator.run(f"scan{number}", [*operands, *captured])
        index = evaluator.layout(scan.layout.encoding).index
        wanted = fold(operator, operands, scan.axis, scan.reverse)
        for i, (got, want) in enumerate(zip(results, wanted, strict=True)):
            differs = np.stack(got) != want[index]
            if differs.any():
                at, thread = (int(c) for c in np.argwhere(differs)[0])
                raise Mismatch(
                    f"scan {number} ({scan}), result {i}: {int(differs.sum())} of {differs.size} "
                    f"elements are wrong; register {at} of thread {thread}: "
                    f"got {got[at][thread]}, want {want[index][at, thread]}"
                )


def compare(number: int, scan: Scan, wanted: list[np.ndarray], outputs: list[np.ndarray]) -> None:
    """Raise Mismatch unless each copy of each result is what is wanted (0.0 equals -0.0)."""
    for i, (kind, want, memory) in enumerate(
        zip(scan.operator.kinds, wanted, outputs, strict=True)
    ):
        got = _from_memory(memory, kind)
        want = np.broadcast_to(want, got.shape).astype(got.dtype)
        if np.array_equal(got, want):
            continue
        at = tuple(int(c) for c in np.argwhere(got != want)[0])
        raise Mismatch(
            f"scan {number} ({scan}), result {i}: {int((got != want).sum())} of {got.size} "
            f"elements are wrong; copy {at[0]}, index {at[1:]}: got {got[at]}, want {want[at]}"
        )
