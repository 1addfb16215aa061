"""Programs: kernels with a few independent scans, and their text as TTGIR."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from math import prod

from hypothesis import strategies as st
from triton import native_scan

from .backends import TextBackend, is_float
from .layouts import TARGETS, Layout, Machine, layouts, sliced
from .operators import Operator, operators

# The source base's Triton has no native flips, and its axes must not cross CTAs.
FORMS = ("scan", "flip", "between flips", "twice", "call")
CTAS = (1, 2, 4, 8)
if native_scan.is_built_in():
    FORMS, CTAS = ("scan", "twice", "call"), (1,)
LOOPS = ("none", "reload", "repeat", "while", "if")


@dataclass(frozen=True)
class Scan:
    """One scan, with pointers of its own.

    loop: "none"; "repeat" scans `trips` times what the scan before gave, "while" too, in an
        scf.while; "reload" scans `trips` tensors and adds up the results (the maximum of floats,
        xor of i1); "if" scans if `trips` is more than 1, and else does nothing.
    is_static: is the trip count a constant?
    seed: of the data
    form: "scan"; "flip" flips instead; "between flips" flips before and after the scan; "twice"
        adds up, as above, a scan and one in the other direction; "call" scans in a function that
        is not inlined.
    """

    layout: Layout
    axis: int
    reverse: bool
    operator: Operator
    loop: str
    trips: int
    is_static: bool
    seed: int
    form: str = "scan"

    @property
    def num_tensors(self) -> int:
        """How many tensors each operand's buffer holds."""
        return self.trips if self.loop == "reload" else 1

    def __str__(self) -> str:
        direction = "reverse" if self.reverse else "forward"
        loop = f", {self.loop} x{self.trips}" if self.loop != "none" else ""
        form = f", {self.form}" if self.form != "scan" else ""
        return (
            f"{self.operator.name}, axis {self.axis}, {direction}{form}{loop}, "
            f"data seed {self.seed}"
        )


@dataclass(frozen=True)
class Program:
    """Scans in one kernel, so that they share the cost of a compilation and of a launch.

    workers: the warps of the partitions of a ttg.warp_specialize in which the scans after the first
        are, one each; empty if there is none.
    """

    machine: Machine
    scans: tuple[Scan, ...]
    workers: tuple[int, ...] = ()

    def describe(self) -> str:
        """Return the TTGIR below a comment for each scan."""
        comments = "".join(f"// scan {i}: {scan}\n" for i, scan in enumerate(self.scans))
        return comments + write(self)

    def __repr__(self) -> str:
        return f"<program of {len(self.scans)} scans>"


@st.composite
def scans(draw, machine: Machine, max_bits: int, forms: tuple[str, ...] = FORMS) -> Scan:
    layout = draw(layouts(machine, max_bits))
    operator = draw(operators())
    if native_scan.is_built_in() and not machine.target.startswith("cuda"):
        # That Triton takes the module's first function for the kernel.
        forms = tuple(form for form in forms if form != "call")
    form = draw(st.sampled_from(("scan", "scan", *forms)))
    loops = ["none", "none", "reload", "if"]
    # What is added up twice is no longer what the operator takes.
    if operator.is_closed and form != "twice":
        loops += ["repeat", "while"]
    loop = draw(st.sampled_from(loops))
    return Scan(
        layout,
        draw(st.integers(0, len(layout.shape) - 1)),
        draw(st.booleans()),
        operator,
        loop,
        draw(st.integers(1, 3)) if loop != "none" else 1,
        loop != "none" and draw(st.booleans()),
        draw(st.integers(0, 999)),
        form,
    )


@st.composite
def specialized(draw) -> Program:
    """Programs whose scans are in partitions with numbers of warps of their own."""
    ctas = draw(st.sampled_from((1, 1, *CTAS[:2])))
    warps = draw(st.sampled_from((4, 4, 8)))
    workers = tuple(draw(st.lists(st.sampled_from((1, 2, 4)), min_size=1, max_size=2)))
    inside = [
        draw(scans(machine, machine.thread_bits + 1, FORMS[:-1]))
        for machine in (Machine(32, own, ctas) for own in (warps, *workers))
    ]
    return Program(Machine(32, warps, ctas), tuple(inside), workers)


@st.composite
def programs(
    draw, max_scans: int = 6, target: str = "cuda:90", large_tensors: bool = True
) -> Program:
    """Programs for 1 to 16 warps and, for NVIDIA, 1 to 8 CTAs.

    large_tensors: is there now and then one of which a thread holds up to 128 elements?
    """
    is_cuda = target.startswith("cuda")
    if is_cuda and max_scans > 1 and draw(st.integers(0, 11)) == 11:
        return draw(specialized())
    few = (1,) * 12
    several = sorted((*CTAS[1:3], *CTAS[1:]))
    ctas = draw(st.sampled_from((*few, *several))) if is_cuda else 1
    warps = draw(st.sampled_from({1: (1, 2, 4, 8, 16), 8: (1, 2)}.get(ctas, (1, 2, 4))))
    machine = Machine(TARGETS[target], warps, ctas, target)
    # Now and then a large tensor by itself; 128 elements a thread take seconds to compile.
    size = draw(st.integers(0, 199))
    if size >= 192 and large_tensors:
        max_bits = 12 if size == 199 else min(12, machine.thread_bits + 4)
        return Program(machine, (draw(scans(machine, max_bits)),))
    # The more elements a thread holds, the fewer scans, so that kernels stay small.
    register_bits = draw(st.sampled_from((1, 0, 1, 2, 1, 3)))
    max_bits = max(7, machine.thread_bits + register_bits)
    most = max(max_scans >> max(register_bits - 1, 0), 1)
    # Few scans are as dear as many, but shrink towards one.
    count = draw(st.sampled_from(range(1, most + 1)) | st.just(most))
    return Program(machine, tuple(draw(scans(machine, max_bits)) for _ in range(count)))


def memory_type(kind: str) -> str:
    return "i8" if kind == "i1" else kind


def _tensor(shape, kind: str, encoding: str) -> str:
    return f"tensor<{''.join(f'{size}x' for size in shape)}{kind}, {encoding}>"


class _Writer:
    """Writes the body of a kernel; the names of values begin with `prefix`."""

    def __init__(self, prefix: str):
        self.prefix = prefix
        self.lines: list[str] = []
        self.indent = "    "
        self.count = 0

    def line(self, text: str) -> None:
        self.lines.append(self.indent + text)

    def define(self, text: str) -> str:
        name = self.fresh()
        self.line(f"{name} = {text}")
        return name

    def fresh(self) -> str:
        self.count += 1
        return f"%{self.prefix}{self.count}"

    def offsets(self, shape, encoding: str) -> str:
        """Define the row-major offset of each element, an i32 tensor."""
        total = None
        full = _tensor(shape, "i32", encoding)
        stride = prod(shape)
        for dim, size in enumerate(shape):
            stride //= size
            # Encodings with fewer and fewer dimensions, and the way back.
            encodings = [encoding]
            removed = [d for d in reversed(range(len(shape))) if d != dim]
            for d in removed:
                encodings.append(sliced(encodings[-1], d))
            part = [size]
            kind = _tensor(part, "i32", encodings.pop())
            value = self.define(f"tt.make_range {{start = 0 : i32, end = {size} : i32}} : {kind}")
            for d in reversed(removed):
                part.insert(d, 1)
                old, kind = kind, _tensor(part, "i32", encodings.pop())
                value = self.define(
                    f"tt.expand_dims {value} {{axis = {d} : i32}} : {old} -> {kind}"
                )
            if stride != 1:
                factor = self.define(f"arith.constant dense<{stride}> : {kind}")
                value = self.define(f"arith.muli {value}, {factor} : {kind}")
            if kind != full:
                value = self.define(f"tt.broadcast {value} : {kind} -> {full}")
            total = self.define(f"arith.addi {total}, {value} : {full}") if total else value
        return total

    def pointers(self, pointer: str, offsets: str, shape, kind: str, encoding: str) -> str:
        memory = memory_type(kind)
        many = _tensor(shape, f"!tt.ptr<{memory}>", encoding)
        splat = self.define(f"tt.splat {pointer} : !tt.ptr<{memory}> -> {many}")
        return self.define(
            f"tt.addptr {splat}, {offsets} : {many}, {_tensor(shape, 'i32', encoding)}"
        )

    def load(self, pointer: str, offsets: str, shape, kind: str, encoding: str) -> str:
        at = self.pointers(pointer, offsets, shape, kind, encoding)
        value = self.define(
            f"tt.load {at} : {_tensor(shape, f'!tt.ptr<{memory_type(kind)}>', encoding)}"
        )
        if kind != "i1":
            return value
        wide = _tensor(shape, "i8", encoding)
        zero = self.define(f"arith.constant dense<0> : {wide}")
        return self.define(f"arith.cmpi ne, {value}, {zero} : {wide}")

    def store(self, pointer: str, offsets: str, value: str, shape, kind: str, encoding: str):
        if kind == "i1":
            narrow, wide = (_tensor(shape, k, encoding) for k in ("i1", "i8"))
            value = self.define(f"arith.extui {value} : {narrow} to {wide}")
        at = self.pointers(pointer, offsets, shape, kind, encoding)
        self.line(
            f"tt.store {at}, {value} : {_tensor(shape, f'!tt.ptr<{memory_type(kind)}>', encoding)}"
        )

    def scan(self, scan: Scan, values: list[str]) -> list[str]:
        """Define the results of the tt.scan of `values`."""
        kinds = scan.operator.kinds
        types = [_tensor(scan.layout.shape, kind, scan.layout.encoding) for kind in kinds]
        captured = [
            (f"%{self.prefix}c{i}", kind) for i, (kind, _) in enumerate(scan.operator.captured)
        ]
        region = TextBackend(captured)
        sides = [[(f"%{side}{i}", k) for i, k in enumerate(kinds)] for side in "ab"]
        combined = scan.operator.combine(region, *sides)
        arguments = ", ".join(f"{name}: {kind}" for side in sides for name, kind in side)
        result = self.fresh()
        self.line(
            f'{result}:{len(kinds)} = "tt.scan"({", ".join(values)}) '
            f"<{{axis = {scan.axis} : i32, reverse = {str(scan.reverse).lower()}}}> ({{"
        )
        self.line(f"^bb0({arguments}):")
        for text in region.lines:
            self.line(f"  {text}")
        names = ", ".join(name for name, _ in combined)
        self.line(f"  tt.scan.return {names} : {', '.join(kinds)}")
        self.line(f"}}) : ({', '.join(types)}) -> ({', '.join(types)})")
        return [f"{result}#{i}" for i in range(len(kinds))]

    def flip(self, scan: Scan, values: list[str]) -> list[str]:
        """Define the flipped tensors, as tl.flip does (lib/Analysis/Flip.cpp)."""
        flipped = []
        for value, kind in zip(values, scan.operator.kinds, strict=True):
            tensor = _tensor(scan.layout.shape, kind, scan.layout.encoding)
            result, mark = self.fresh(), self.fresh()
            self.line(
                f'{result} = "tt.scan"({value}) <{{axis = {scan.axis} : i32, reverse = false}}> ({{'
            )
            self.line(f"^bb0(%a: {kind}, %b: {kind}):")
            self.line(
                f'  {mark} = tt.extern_elementwise %a, %b {{libname = "triton_scan", libpath = "", '
                f'pure = true, symbol = "triton_scan_flip"}} : ({kind}, {kind}) -> {kind}'
            )
            self.line(f"  tt.scan.return {mark} : {kind}")
            self.line(f"}}) : ({tensor}) -> {tensor}")
            flipped.append(result)
        return flipped

    def call(self, scan: Scan, values: list[str]) -> list[str]:
        """Define the results of a call of the scan's function; see function()."""
        results, arguments = _signature(scan)
        captured = [f"%{self.prefix}c{i}" for i in range(len(scan.operator.captured))]
        result = self.fresh()
        self.line(
            f"{result}:{len(results)} = tt.call @{self.prefix}scan"
            f"({', '.join([*values, *captured])}) : ({', '.join(arguments)}) -> "
            f"({', '.join(results)})"
        )
        return [f"{result}#{i}" for i in range(len(results))]

    def computed(self, scan: Scan, values: list[str]) -> list[str]:
        """Define what the scan's form makes of the values."""
        if scan.form == "flip":
            return self.flip(scan, values)
        if scan.form == "between flips":
            return self.flip(scan, self.scan(scan, self.flip(scan, values)))
        if scan.form == "call":
            return self.call(scan, values)
        results = self.scan(scan, values)
        if scan.form == "twice":
            others = self.scan(dataclasses.replace(scan, reverse=not scan.reverse), values)
            results = [
                self.define(
                    f"arith.{_accumulate(kind)} {a}, {b} : "
                    f"{_tensor(scan.layout.shape, kind, scan.layout.encoding)}"
                )
                for kind, a, b in zip(scan.operator.kinds, results, others, strict=True)
            ]
        return results

    def repeated(self, scan: Scan, values: list[str]) -> list[str]:
        """Define what an scf.while or scf.if around the scan gives."""
        shape, encoding = scan.layout.shape, scan.layout.encoding
        types = [_tensor(shape, kind, encoding) for kind in scan.operator.kinds]
        end = f"%{self.prefix}n"
        if scan.is_static:
            end = self.define(f"arith.constant {scan.trips} : i32")
        one = self.define("arith.constant 1 : i32")
        if scan.loop == "if":
            condition = self.define(f"arith.cmpi sgt, {end}, {one} : i32")
            result = self.fresh()
            listed = ", ".join(types)
            self.line(f"{result}:{len(types)} = scf.if {condition} -> ({listed}) {{")
            inside = self.computed(scan, values)
            self.line(f"scf.yield {', '.join(inside)} : {listed}")
            self.line("} else {")
            self.line(f"scf.yield {', '.join(values)} : {listed}")
            self.line("}")
            return [f"{result}#{i}" for i in range(len(types))]
        lower = self.define("arith.constant 0 : i32")
        listed = ", ".join(["i32", *types])
        result = self.fresh()
        before, after = ([self.fresh() for _ in range(len(types) + 1)] for _ in "ba")
        pairs = ", ".join(f"{a} = {b}" for a, b in zip(before, [lower, *values], strict=True))
        self.line(f"{result}:{len(before)} = scf.while ({pairs}) : ({listed}) -> ({listed}) {{")
        goes_on = self.define(f"arith.cmpi slt, {before[0]}, {end} : i32")
        self.line(f"scf.condition({goes_on}) {', '.join(before)} : {listed}")
        self.line("} do {")
        arguments = zip(after, ["i32", *types], strict=True)
        self.line(f"^bb0({', '.join(f'{a}: {t}' for a, t in arguments)}):")
        following = self.define(f"arith.addi {after[0]}, {one} : i32")
        inside = self.computed(scan, after[1:])
        self.line(f"scf.yield {', '.join([following, *inside])} : {listed}")
        self.line("}")
        return [f"{result}#{i + 1}" for i in range(len(types))]

    def looped(self, scan: Scan, inputs: list[str], offsets: str) -> list[str]:
        """Define what the loop around the scan gives."""
        shape, encoding = scan.layout.shape, scan.layout.encoding
        kinds = scan.operator.kinds
        types = [_tensor(shape, kind, encoding) for kind in kinds]
        offset_type = _tensor(shape, "i32", encoding)
        if scan.loop == "repeat":
            carried, carried_types = list(inputs), types
        else:
            zeros = [
                self.define(f"arith.constant dense<{_zero(kind)}> : {t}")
                for kind, t in zip(kinds, types, strict=True)
            ]
            step = self.define(f"arith.constant dense<{prod(shape)}> : {offset_type}")
            carried, carried_types = [*zeros, offsets], [*types, offset_type]
        end = f"%{self.prefix}n"
        if scan.is_static:
            end = self.define(f"arith.constant {scan.trips} : i32")
        lower = self.define("arith.constant 0 : i32")
        one = self.define("arith.constant 1 : i32")
        result, inside = self.fresh(), [self.fresh() for _ in carried]
        pairs = ", ".join(f"{a} = {b}" for a, b in zip(inside, carried, strict=True))
        self.line(
            f"{result}:{len(carried)} = scf.for {self.fresh()} = {lower} to {end} step {one} "
            f"iter_args({pairs}) -> ({', '.join(carried_types)}) : i32 {{"
        )
        self.indent += "  "
        if scan.loop == "repeat":
            after = self.computed(scan, inside)
        else:
            loaded = [
                self.load(f"%{self.prefix}i{i}", inside[-1], shape, kind, encoding)
                for i, kind in enumerate(kinds)
            ]
            scanned = self.computed(scan, loaded)
            after = [
                self.define(f"arith.{_accumulate(kind)} {own}, {new} : {t}")
                for kind, own, new, t in zip(kinds, inside, scanned, types, strict=False)
            ]
            after.append(self.define(f"arith.addi {inside[-1]}, {step} : {offset_type}"))
        self.line(f"scf.yield {', '.join(after)} : {', '.join(carried_types)}")
        self.indent = self.indent[:-2]
        self.line("}")
        return [f"{result}#{i}" for i in range(len(kinds))]

    def whole(self, scan: Scan) -> None:
        """Write loads, scan and stores."""
        layout, kinds = scan.layout, scan.operator.kinds
        shape, encoding = layout.shape, layout.encoding
        offsets = self.offsets(shape, encoding)
        values = []
        if scan.loop != "reload":
            values = [
                self.load(f"%{self.prefix}i{i}", offsets, shape, kind, encoding)
                for i, kind in enumerate(kinds)
            ]
        if scan.loop == "none":
            values = self.computed(scan, values)
        elif scan.loop in ("while", "if"):
            values = self.repeated(scan, values)
        else:
            values = self.looped(scan, values, offsets)
        if layout.viewer:
            full = (layout.copies, *shape)
            offsets = self.offsets(full, layout.viewer)
            values = [self.view(layout, v, kind) for v, kind in zip(values, kinds, strict=True)]
            shape, encoding = full, layout.viewer
        for i, (value, kind) in enumerate(zip(values, kinds, strict=True)):
            self.store(f"%{self.prefix}o{i}", offsets, value, shape, kind, encoding)

    def view(self, layout: Layout, value: str, kind: str) -> str:
        """Give every thread's copy an element of its own; costs no instruction."""
        inner = sliced(layout.viewer, 0)
        types = [
            _tensor(layout.shape, kind, layout.encoding),
            _tensor(layout.shape, kind, inner),
            _tensor((1, *layout.shape), kind, layout.viewer),
            _tensor((layout.copies, *layout.shape), kind, layout.viewer),
        ]
        if layout.encoding != inner:
            value = self.define(f"ttg.convert_layout {value} : {types[0]} -> {types[1]}")
        value = self.define(f"tt.expand_dims {value} {{axis = 0 : i32}} : {types[1]} -> {types[2]}")
        return self.define(f"tt.broadcast {value} : {types[2]} -> {types[3]}")


def _zero(kind: str) -> str:
    return "0.0" if is_float(kind) else "false" if kind == "i1" else "0"


def _accumulate(kind: str) -> str:
    return "maxnumf" if is_float(kind) else "xori" if kind == "i1" else "addi"


def _signature(scan: Scan) -> tuple[list[str], list[str]]:
    """Return the types of the results and of the parameters of the scan's function."""
    types = [_tensor(scan.layout.shape, kind, scan.layout.encoding) for kind in scan.operator.kinds]
    return types, types + [kind for kind, _ in scan.operator.captured]


def _function(scan: Scan, name: str, visibility: str, attributes: str = "") -> str:
    """Return a function of the operands and the captured scalars that returns the scan."""
    results, types = _signature(scan)
    count = len(results)
    names = [f"%x{i}" for i in range(count)]
    names += [f"%s_c{i}" for i in range(len(types) - count)]
    writer = _Writer("s_")
    values = writer.scan(scan, names[:count])
    writer.line(f"tt.return {', '.join(values)} : {', '.join(results)}")
    parameters = ", ".join(f"{n}: {t}" for n, t in zip(names, types, strict=True))
    body = "\n".join(writer.lines)
    return (
        f"  tt.func {visibility} @{name}({parameters}) -> ({', '.join(results)}){attributes} {{\n"
        f"{body}\n  }}\n"
    )


def _partitioned(bodies: list[str], parameters: list[str], workers: tuple[int, ...]) -> str:
    """Return a warp_specialize with a body in each partition."""
    plain = [parameter.split(" {")[0] for parameter in parameters]
    names, types = zip(*(parameter.split(": ") for parameter in plain), strict=True)
    lines = [f"    ttg.warp_specialize({', '.join(names)})", "    default {", bodies[0]]
    lines += ["      ttg.warp_yield", "    }"]
    for number, (body, warps) in enumerate(zip(bodies[1:], workers, strict=True)):
        partition = [f"    partition{number}({', '.join(plain)}) num_warps({warps}) {{", body]
        # The kernel's parameters have other names in there.
        lines += [re.sub(r"%(s\d+_)", rf"%p{number}_\1", text) for text in partition]
        lines += ["      ttg.warp_return", "    }"]
    lines[-1] += f" : ({', '.join(types)}) -> ()"
    return "\n".join(lines)


def write(program: Program) -> str:
    """Return the TTGIR of a program.

    The kernel's parameters are, for each scan: pointers to the operands, pointers to the results,
    the captured scalars, and the trip count unless there is no loop or it is static.
    """
    aliases, parameters, bodies, functions = [], [], [], []
    for number, scan in enumerate(program.scans):
        prefix = f"s{number}_"
        for side in "io":
            parameters += [
                f"%{prefix}{side}{i}: !tt.ptr<{memory_type(kind)}> {{tt.divisibility = 16 : i32}}"
                for i, kind in enumerate(scan.operator.kinds)
            ]
        parameters += [
            f"%{prefix}c{i}: {kind}" for i, (kind, _) in enumerate(scan.operator.captured)
        ]
        if scan.loop != "none" and not scan.is_static:
            parameters.append(f"%{prefix}n: i32")
        writer = _Writer(prefix)
        writer.whole(scan)
        body = "\n".join(writer.lines)
        # A slice of the viewer as encoding contains it, so that one comes first.
        for alias, encoding in (("viewer", scan.layout.viewer), ("layout", scan.layout.encoding)):
            if encoding and encoding in body:
                aliases.append(f"#{alias}{number} = {encoding}\n")
                body = body.replace(encoding, f"#{alias}{number}")
        bodies.append(body)
        if scan.form == "call":
            functions.append(
                _function(scan, f"{prefix}scan", "private", " attributes {noinline = true}")
            )
    body = "\n".join(bodies)
    if program.workers:
        body = _partitioned(bodies, parameters, program.workers)
    function = f"  tt.func public @fuzz({', '.join(parameters)}) {{\n{body}\n    tt.return\n  }}\n"
    return "".join(aliases) + _module(program.machine, "".join([*functions, function]))


def write_functions(program: Program) -> str:
    """Return TTGIR with a function @scanI for each scan, without memory and loops.

    Its parameters are the operands, then the captured scalars; it returns the results.
    """
    functions = [
        _function(scan, f"scan{number}", "public") for number, scan in enumerate(program.scans)
    ]
    return _module(program.machine, "".join(functions))


def _module(machine: Machine, functions: str) -> str:
    return (
        f'module attributes {{"ttg.num-warps" = {machine.warps} : i32, '
        f'"ttg.num-ctas" = {machine.ctas} : i32, '
        f'"ttg.threads-per-warp" = {machine.lanes} : i32, '
        f'ttg.target = "{machine.target}"}} {{\n{functions}}}\n'
    )
