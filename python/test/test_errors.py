"""Mistakes in a scan's arguments end in one sentence; nothing is compiled (cases 6 and 13)."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import numpy as np
import pytest
import triton
import triton.language as tl
from conftest import CUDA_90
from kernels import EXAMPLES, add, affine
from triton import native_scan
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.compiler.errors import CompilationError
from triton.native_scan import ScanLoweringError
from triton.tools.asm_counts import ptx_opcodes

SIGNATURE = {
    "x": "*fp32",
    "out": "*fp32",
    "flag": "i32",
    "AXIS": "constexpr",
    "REVERSE": "constexpr",
}


@triton.jit
def two_dimensional(x, out, flag, AXIS: tl.constexpr, REVERSE: tl.constexpr):
    i = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
    tl.store(out + i, tl.associative_scan(tl.load(x + i), AXIS, add, reverse=REVERSE))


@triton.jit
def cumsum_member(x, out, flag, AXIS: tl.constexpr, REVERSE: tl.constexpr):
    i = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
    tl.store(out + i, tl.load(x + i).cumsum(AXIS, REVERSE))


@triton.jit
def runtime_reverse(x, out, flag, AXIS: tl.constexpr, REVERSE: tl.constexpr):
    i = tl.arange(0, 16)
    tl.store(out + i, tl.associative_scan(tl.load(x + i), 0, add, reverse=flag > 0))


@triton.jit
def runtime_axis(x, out, flag, AXIS: tl.constexpr, REVERSE: tl.constexpr):
    i = tl.arange(0, 16)
    tl.store(out + i, tl.associative_scan(tl.load(x + i), flag, add))


@triton.jit
def different_shapes(x, out, flag, AXIS: tl.constexpr, REVERSE: tl.constexpr):
    a, b = tl.load(x + tl.arange(0, 16)), tl.load(x + tl.arange(0, 32))
    a, b = tl.associative_scan((a, b), 0, affine)
    tl.store(out + tl.arange(0, 16), a)


@triton.jit
def scalar_input(x, out, flag, AXIS: tl.constexpr, REVERSE: tl.constexpr):
    tl.store(out, tl.associative_scan(tl.load(x), 0, add))


@triton.jit
def constant_input(x, out, flag, AXIS: tl.constexpr, REVERSE: tl.constexpr):
    tl.store(out, tl.associative_scan(3, 0, add))


@triton.jit
def empty_tuple(x, out, flag, AXIS: tl.constexpr, REVERSE: tl.constexpr):
    tl.associative_scan((), 0, add)


@triton.jit
def not_a_function(x, out, flag, AXIS: tl.constexpr, REVERSE: tl.constexpr):
    tl.store(out, tl.associative_scan(tl.load(x + tl.arange(0, 16)), 0, 7))


@triton.jit
def returns_one(a1, b1, a2, b2):
    return a1 + a2


@triton.jit
def returns_two(a, b):
    return a, b


@triton.jit
def returns_nothing(a, b):
    pass


@triton.jit
def returns_half(a, b):
    return (a + b).to(tl.float16)


@triton.jit
def returns_constant(a, b):
    return 1.0


@triton.jit
def a_builtin(x, out, flag, AXIS: tl.constexpr, REVERSE: tl.constexpr):
    tl.store(out, tl.associative_scan(tl.load(x + tl.arange(0, 16)), 0, tl.maximum))


@triton.jit
def tuple_in_tuple(x, out, flag, AXIS: tl.constexpr, REVERSE: tl.constexpr):
    v = tl.load(x + tl.arange(0, 16))
    tl.associative_scan(((v, 1), v), 0, affine)


NUMPY_AXIS = tl.constexpr(np.int64(0))
NUMPY_TRUE = tl.constexpr(np.bool_(True))


@triton.jit
def numpy_axis(x, out, flag, AXIS: tl.constexpr, REVERSE: tl.constexpr):
    tl.store(out, tl.associative_scan(tl.load(x + tl.arange(0, 16)), NUMPY_AXIS, add))


@triton.jit
def numpy_reverse(x, out, flag, AXIS: tl.constexpr, REVERSE: tl.constexpr):
    tl.store(out, tl.associative_scan(tl.load(x + tl.arange(0, 16)), 0, add, reverse=NUMPY_TRUE))


@triton.jit
def returns_tuple(a, b):
    return ((a, b),)


@triton.jit
def nested_result(x, out, flag, AXIS: tl.constexpr, REVERSE: tl.constexpr):
    v = tl.load(x + tl.arange(0, 16))
    tl.store(out + tl.arange(0, 16), tl.associative_scan(v, 0, returns_tuple))


@triton.jit
def too_few(x, out, flag, AXIS: tl.constexpr, REVERSE: tl.constexpr):
    v = tl.load(x + tl.arange(0, 16))
    a, b = tl.associative_scan((v, v), 0, returns_one)
    tl.store(out + tl.arange(0, 16), a + b)


@triton.jit
def too_many(x, out, flag, AXIS: tl.constexpr, REVERSE: tl.constexpr):
    tl.store(
        out + tl.arange(0, 16), tl.associative_scan(tl.load(x + tl.arange(0, 16)), 0, returns_two)
    )


@triton.jit
def nothing(x, out, flag, AXIS: tl.constexpr, REVERSE: tl.constexpr):
    v = tl.load(x + tl.arange(0, 16))
    tl.store(out + tl.arange(0, 16), tl.associative_scan(v, 0, returns_nothing))


@triton.jit
def wrong_type(x, out, flag, AXIS: tl.constexpr, REVERSE: tl.constexpr):
    v = tl.load(x + tl.arange(0, 16))
    tl.store(out + tl.arange(0, 16), tl.associative_scan(v, 0, returns_half))


@triton.jit
def constant(x, out, flag, AXIS: tl.constexpr, REVERSE: tl.constexpr):
    v = tl.load(x + tl.arange(0, 16))
    tl.store(out + tl.arange(0, 16), tl.associative_scan(v, 0, returns_constant))


def innermost(error: BaseException) -> BaseException:
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def refusal(compile_kernel, fn, **constexprs) -> str:
    """Compile, and return the text of the innermost exception, which must be one line."""
    with pytest.raises(CompilationError) as caught:
        compile_kernel(fn, SIGNATURE, {"AXIS": 0, "REVERSE": False} | constexprs)
    cause = innermost(caught.value)
    assert type(cause) in (TypeError, ValueError), repr(cause)
    assert "\n" not in str(cause)
    return str(cause)


RANGE = re.escape("axis must be an int in [-2, 1] for an input of rank 2")


@pytest.mark.parametrize("fn", [two_dimensional, cumsum_member])
class TestAxisAndReverse:
    @pytest.mark.parametrize("axis", [2, 3, -3, 100])
    def test_axis_out_of_range(self, compile_kernel, fn, axis):
        assert re.search(f"{RANGE}, got {axis}$", refusal(compile_kernel, fn, AXIS=axis))

    @pytest.mark.parametrize("axis", [1.0, "0", True, (0,)])
    def test_axis_of_a_wrong_type(self, compile_kernel, fn, axis):
        assert re.search(
            f"{RANGE}, .*of type {type(axis).__name__}", refusal(compile_kernel, fn, AXIS=axis)
        )

    def test_no_axis(self, compile_kernel, fn):
        assert re.search(f"{RANGE}.*no default axis", refusal(compile_kernel, fn, AXIS=None))

    @pytest.mark.parametrize("reverse", [0, 1, 2, "yes", None, 1.0])
    def test_reverse_must_be_a_bool(self, compile_kernel, fn, reverse):
        text = refusal(compile_kernel, fn, REVERSE=reverse)
        assert "reverse must be True or False" in text
        assert f"{reverse!r} of type {type(reverse).__name__}" in text

    @pytest.mark.parametrize("axis", [-2, -1, 0, 1])
    @pytest.mark.parametrize("reverse", [True, False])
    def test_every_right_value(self, compile_kernel, fn, axis, reverse):
        ttir = compile_kernel(fn, SIGNATURE, {"AXIS": axis, "REVERSE": reverse}).asm["ttir"]
        (scan,) = re.findall(r'"tt.scan".*', ttir)
        assert f"axis = {axis % 2} : i32, reverse = {str(reverse).lower()}" in scan


@pytest.mark.parametrize(
    ("fn", "pattern"),
    [
        (
            runtime_reverse,
            r"reverse must be True or False, known at compile time, got a value known",
        ),
        (
            runtime_axis,
            r"axis must be an int in \[-1, 0\] .*rank 1.*got a value known only at run time",
        ),
        (different_shapes, r"same shape, operand 0 has \(16,\) and operand 1 has \(32,\)"),
        (scalar_input, "at least one dimension, got a scalar"),
        (constant_input, "input must be a tensor or a tuple of tensors, got 3 of type int"),
        (empty_tuple, "at least one operand, got an empty tuple"),
        (not_a_function, "combine_fn must be a function marked with @triton.jit, got 7"),
        (a_builtin, "marked with @triton.jit, got maximum of type function$"),
        (
            tuple_in_tuple,
            r"operand 0 is a tuple of a value .*, of type .*fp32.* and 1 of type int$",
        ),
        (numpy_axis, r"got np\.int64\(0\) of type numpy\.int64$"),
        (numpy_reverse, r"got np\.True_ of type numpy\.bool;"),
        (
            nested_result,
            r"it returns a tuple of a value .* of type fp32 and a value .* of type fp32",
        ),
        (too_few, r"combine_fn returns_one must return 2 value\(s\), .* it returns 1"),
        (too_many, r"combine_fn returns_two must return 1 value\(s\), .* it returns 2"),
        (nothing, "combine_fn returns_nothing must return"),
        (wrong_type, "combine_fn returns_half must return fp32 for operand 0, it returns fp16"),
        (constant, "combine_fn returns_constant must return fp32 for operand 0, it returns 1.0"),
    ],
    ids=lambda v: getattr(v, "__name__", ""),
)
def test_refused_with_one_sentence(compile_kernel, fn, pattern):
    assert re.search(pattern, refusal(compile_kernel, fn))


def test_nothing_is_left_in_the_cache(compile_kernel, session_cache):
    before = {p for p in session_cache.rglob("*") if p.is_file()}
    refusal(compile_kernel, two_dimensional, AXIS=7)
    assert {p for p in session_cache.rglob("*") if p.is_file()} == before


INTERPRETED = """
import json
import numpy as np, triton, triton.language as tl

@triton.jit
def combine(a, b):
    return a + b * 1.0

@triton.jit
def kernel(address, AXIS: tl.constexpr, REVERSE: tl.constexpr):
    pointers = address.to(tl.pointer_type(tl.float32), bitcast=True)
    pointers += tl.arange(0, 2)[:, None] * 4 + tl.arange(0, 4)[None, :]
    tl.store(pointers, tl.associative_scan(tl.load(pointers), AXIS, combine, reverse=REVERSE))

def scan(axis, reverse):
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    kernel[(1, )](x.ctypes.data, axis, reverse)
    return x.tolist()

def refusal(axis, reverse):
    try:
        scan(axis, reverse)
    except Exception as error:
        while error.__cause__ is not None:
            error = error.__cause__
        return str(error)

print(json.dumps({
    "axis": [refusal(a, False) for a in (2, -3, None, 1.0)],
    "reverse": [refusal(0, r) for r in (2, "yes", 1, None)],
    "negative": scan(-1, False), "negative_reverse": scan(-2, True),
}))
"""


def test_interpreter(run_python):
    done = run_python(INTERPRETED, ":".join(filter(None, sys.path)), TRITON_INTERPRET="1")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert all(re.search(RANGE, text) for text in report["axis"]), report
    assert all("reverse must be True or False" in text for text in report["reverse"]), report
    assert report["negative"] == [[0, 1, 3, 6], [4, 9, 15, 22]]
    assert report["negative_reverse"] == [[4, 6, 8, 10], [4, 5, 6, 7]]


@triton.jit(noinline=True)
def barrier_apart(a, b):
    tl.debug_barrier()
    return a + b


@triton.jit
def waits(a, b):
    if a > b:
        tl.debug_barrier()
    return a + b


@triton.jit
def calls(a, b):
    return barrier_apart(a, b)


@triton.jit
def reduces(a, b):
    return a + tl.max(tl.full([64], b, tl.float32))


@triton.jit
def scans(a, b):
    return a + tl.sum(tl.cumsum(tl.full([64], b, tl.float32), 0))


@triton.jit
def scans_one(a, b):
    return a + tl.sum(tl.cumsum(tl.full([1], b, tl.float32), 0))


@triton.jit
def combining(x, out, flag, FN: tl.constexpr, REVERSE: tl.constexpr):
    i = tl.arange(0, 256)
    v = tl.load(x + i)
    for _ in range(flag):
        v = tl.associative_scan(v, 0, FN, reverse=REVERSE)
    tl.store(out + i, v)


@pytest.mark.parametrize(
    ("fn", "does"),
    [
        (waits, "waits at a barrier"),
        (calls, "waits at a barrier"),
        (reduces, "computes with a block"),
        (scans, "computes with a block"),
        (scans_one, "scans"),
    ],
)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("target", [CUDA_90, GPUTarget("hip", "gfx942", 64)], ids=str)
def test_combine_function_that_takes_all_threads(compile_kernel, fn, does, reverse, target):
    signature = {k: v for k, v in SIGNATURE.items() if k != "AXIS"} | {"FN": "constexpr"}
    with pytest.raises(ScanLoweringError) as caught:
        compile_kernel(combining, signature, {"FN": fn, "REVERSE": reverse}, target)
    assert re.fullmatch(
        r".*test_errors\.py:\d+:\d+: 'tt\.scan' op cannot be lowered: its combine "
        rf"function {does}, which takes all threads together; it may use scalars only",
        str(caught.value),
    )


@pytest.mark.parametrize("num_ctas", [2, 4])
@pytest.mark.parametrize("reverse", [False, True])
def test_scan_across_ctas_works_or_is_refused_by_name(compile_kernel, num_ctas, reverse):
    cumsum = EXAMPLES[0]
    try:
        compiled = compile_kernel(
            cumsum.kernel, cumsum.signature, {"REVERSE": reverse}, num_ctas=num_ctas
        )
    except ScanLoweringError as error:
        assert "num_ctas" in str(error)
        assert "\n" not in str(error)
        assert re.match(r".*kernels\.py:\d+:\d+: ", str(error))
    else:
        opcodes = ptx_opcodes(compiled.asm["ptx"])
        assert any(op.startswith("barrier.cluster") for op in opcodes)


WRONG_TYPE = """
#blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32],
                         warpsPerCTA = [1], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.target = "cuda:90",
                   "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%x: tensor<32xf32, #blocked>) {
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = true}> ({
    ^bb0(%a: f32, %b: f32):
      %s = arith.addf %a, %b : f64
      tt.scan.return %s : f32
    }) : (tensor<32xf32, #blocked>) -> tensor<32xf32, #blocked>
    tt.return
  }
}
"""


def scan_opt(text: str, *arguments: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "triton.tools.scan_opt", *arguments, "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True)


def test_scan_opt_reports_a_parse_error():
    done = scan_opt(WRONG_TYPE)
    assert done.returncode == 1
    assert done.stdout == ""
    assert "error:" in done.stderr


def test_scan_opt_prints_a_right_module():
    done = scan_opt(WRONG_TYPE.replace("f64", "f32"))
    assert done.returncode == 0, done.stderr
    assert "reverse = true" in done.stdout
    assert "loc(" not in done.stdout
    assert "loc(" in scan_opt(WRONG_TYPE.replace("f64", "f32"), "--mlir-print-debuginfo").stdout


@pytest.mark.parametrize(
    "target", ["toaster:1", "cuda", "cuda:", "cuda:90a", "cuda:-5", "hip", "hip:foo", None]
)
def test_module_for_no_known_target(target, tmp_path):
    """In a pipeline that is neither a backend's nor triton-scan-opt's, which say the target."""
    path = tmp_path / "module.mlir"
    named = f', ttg.target = "{target}"' if target else ""
    path.write_text(WRONG_TYPE.replace("f64", "f32").replace(', ttg.target = "cuda:90"', named))
    context = ir.context()
    ir.load_dialects(context)
    module = ir.parse_mlir_module(str(path), context)
    pm = ir.pass_manager(context)
    native_scan.add_pass(pm, "lower_scan")
    words = "'tt.scan' op cannot be lowered: the module names no known target in its ttg.target "
    words += f'attribute: "{target}"' if target else "attribute$"
    with pytest.raises(ScanLoweringError, match=words):
        native_scan.run_reporting(pm, module, "test")


@pytest.mark.parametrize(
    "target",
    ["cuda", "cuda:x", "cuda:0", "cuda:4294967386", "cuda:٩٠", "hip:90", "hip:gfx", "metal:1"],
)
def test_scan_opt_refuses_a_wrong_target(target):
    done = scan_opt(WRONG_TYPE, f"--target={target}")
    assert done.returncode == 1
    assert "target must be cuda:<number> or hip:gfx<number>" in done.stderr


@pytest.mark.parametrize("line", ["{}", "  {}", "tt.func private @g() {}"])
def test_scan_opt_reads_no_target_in_a_comment(line):
    comment = line.replace("{}", '// ttg.target = "hip:gfx942"')
    module = WRONG_TYPE.replace("f64", "f32").replace(', ttg.target = "cuda:90"', "")
    done = scan_opt(module.replace("{\n", f"{{\n{comment}\n", 1))
    assert "the module has no ttg.target" in done.stderr


@pytest.mark.parametrize("other", ['tt.x = "a \\" // b"', 'tt.ttg.target = "hip:gfx942"'])
def test_scan_opt_reads_the_target_beside_other_attributes(other):
    module = WRONG_TYPE.replace("f64", "f32").replace("ttg.target", f"{other}, ttg.target")
    assert ".target sm_90a" in scan_opt(module, "--ptx").stdout


def test_scan_opt_goes_on_after_a_bad_module():
    right = WRONG_TYPE.replace("f64", "f32")
    done = scan_opt(f"{WRONG_TYPE}\n// -----\n{right}", "--split-input-file")
    assert done.returncode == 1
    assert done.stdout.count("tt.func") == 1


def test_scan_opt_down_to_assembly():
    kernel = WRONG_TYPE.replace("f64", "f32")
    assert "define ptx_kernel void @f" in scan_opt(kernel, "--convert-to-llvm").stdout
    assert ".visible .entry f" in scan_opt(kernel, "--ptx").stdout
    assert "amdgpu" not in scan_opt(kernel, "--amdgcn").stdout
    assert scan_opt(kernel, "--amdgcn").returncode == 1
    amd = kernel.replace("cuda:90", "hip:gfx942").replace('warp" = 32', 'warp" = 64')
    assert "gfx942" in scan_opt(amd.replace("[32]", "[64]"), "--amdgcn").stdout


def test_scan_opt_status_and_missing_input():
    command = [sys.executable, "-m", "triton.tools.scan_opt"]
    done = subprocess.run([*command, "--status"], capture_output=True, text=True)
    assert done.returncode == 0
    assert re.search(r"^available +True$", done.stdout, re.MULTILINE)
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert "the input is missing" in done.stderr


def test_hip_target_is_known():
    from triton.tools.scan_opt import parse_target

    assert parse_target("hip:gfx942") == GPUTarget("hip", "gfx942", 64)
    assert parse_target("hip:gfx1100") == GPUTarget("hip", "gfx1100", 32)
    assert parse_target("hip:gfx1250-strict") == GPUTarget("hip", "gfx1250-strict", 32)
