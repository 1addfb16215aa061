"""triton-scan-opt: parse TTGIR, run the passes named on the command line, print the result.

    triton-scan-opt in.mlir                         parse, verify and print
    triton-scan-opt --lower-scan in.mlir            run the native lowering of tt.scan
    triton-scan-opt --convert-to-llvm in.mlir       the target's pipeline down to LLVM IR
    triton-scan-opt --ptx --target=cuda:90 -        TTGIR from stdin to PTX

The number of warps, CTAs and the target are read from the module's attributes (ttg.num-warps,
ttg.num-ctas, ttg.target); --target overrides or supplies the last one.  A failure prints the
diagnostic on stderr and makes the exit status 1.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from pathlib import Path

from triton import native_scan
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.compiler.compiler import make_backend

SEPARATOR = "// -----"
_TARGET_ATTRIBUTE = re.compile(r'(?<![\w.$])"?ttg\.target"?\s*=\s*"([^"]+)"')
# A comment, or a string, in which slashes begin none.
_COMMENT = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*')
_CUDA = re.compile(r"[1-9][0-9]{1,2}")
_HIP = re.compile(r"gfx[1-9][0-9]?[0-9][0-9a-f](-[a-z]+)?")
_WAVE64 = re.compile(r"gfx[6-9]")


class OptError(Exception):
    """A mistake in the command line or in the input; the text says what to do."""


def parse_target(text: str) -> GPUTarget:
    """Return the target that 'cuda:90' or 'hip:gfx942' names.  Raises OptError otherwise."""
    backend, _, arch = text.partition(":")
    if backend == "cuda" and _CUDA.fullmatch(arch):
        return GPUTarget("cuda", int(arch), 32)
    if backend == "hip" and _HIP.fullmatch(arch):
        return GPUTarget("hip", arch, 64 if _WAVE64.match(arch) else 32)
    raise OptError(
        f"target must be cuda:<number> or hip:gfx<number>, such as cuda:90, got {text!r}"
    )


def _named_target(text: str) -> str | None:
    """Return the ttg.target of a module's text, comments left out."""
    text = _COMMENT.sub(lambda match: match[0] if match[0][0] == '"' else "", text)
    named = _TARGET_ATTRIBUTE.search(text)
    return named and named.group(1)


def _parse_module(text: str, target: GPUTarget):
    context = ir.context()
    ir.load_dialects(context)
    backend = make_backend(target)
    backend.load_dialects(context)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "input.mlir")
        path.write_text(text, encoding="utf-8")
        module = ir.parse_mlir_module(str(path), context)
    module.context = context
    return module, backend


def _add_stages(backend, stages: dict, options) -> None:
    try:
        from triton.backends.compiler import Language
    except ImportError:  # the Triton of the source base, which knows one language
        backend.add_stages(stages, options)
    else:
        backend.add_stages(stages, options, Language.TRITON)


def _run_stage(backend, module, last: str) -> str:
    """Run the backend's stages after TTGIR up to `last` and return its text."""
    options = {"num_warps": module.get_int_attr("ttg.num-warps")}
    if options["num_warps"] is None:
        raise OptError('the module needs the attribute "ttg.num-warps"')
    if (num_ctas := module.get_int_attr("ttg.num-ctas")) is not None:
        options["num_ctas"] = num_ctas
    parsed = backend.parse_options(options)
    stages: dict = {}
    _add_stages(backend, stages, parsed)
    if last not in stages:
        raise OptError(f"the target {backend.target.backend} does not produce {last}")
    metadata = dict(parsed.__dict__)
    names = list(stages)
    result = module
    for name in names[names.index("ttgir") + 1 : names.index(last) + 1]:
        result = stages[name](result, metadata)
    return result


def process(text: str, arguments: argparse.Namespace) -> str:
    """Return what one module becomes.  Raises OptError, or RuntimeError from the compiler."""
    if not (target := arguments.target or _named_target(text)):
        raise OptError("the module has no ttg.target; give --target=cuda:90 or --target=hip:gfx942")
    module, backend = _parse_module(text, parse_target(target))
    if arguments.target:
        native_scan.set_target(module, arguments.target)
    pipeline = ir.pass_manager(module.context)
    pipeline.enable_debug()
    for name in arguments.pipeline or []:
        native_scan.add_pass(pipeline, name.replace("-", "_"))
    if arguments.pipeline:
        native_scan.run_reporting(pipeline, module, "triton-scan-opt")
    if arguments.stage:
        return _run_stage(backend, module, arguments.stage)
    if not module.verify():
        raise OptError("the module does not verify")
    return module.str() if arguments.mlir_print_debuginfo else module.str_nodebug()


def _split(text: str) -> list[str]:
    return re.split(rf"(?m)^{SEPARATOR}[ \t]*$", text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="triton-scan-opt",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("input", nargs="?", help="a file of TTGIR, or - for stdin")
    parser.add_argument(
        "--status", action="store_true", help="only print whether the native lowering is available"
    )
    for name, text in (
        ("check-combines", "refuse combine functions that take all threads together"),
        ("choose-scan-layout", "give scans the cheapest layout"),
        ("outline-scans", "make scans opaque before warps are specialised"),
        ("inline-scans", "put the outlined scans back"),
        ("lower-flip", "run the native lowering of tl.flip"),
        ("lower-scan", "run the native lowering of tt.scan"),
        ("scan-abi-selftest", "run the extension's ABI self-test"),
    ):
        parser.add_argument(
            f"--{name}", dest="pipeline", action="append_const", const=name, help=text
        )
    for name, stage, text in (
        ("convert-to-llvm", "llir", "print LLVM IR after the target's make_llir"),
        ("ptx", "ptx", "print PTX"),
        ("amdgcn", "amdgcn", "print AMD assembly"),
    ):
        parser.add_argument(f"--{name}", dest="stage", action="store_const", const=stage, help=text)
    parser.add_argument(
        "--target", help="cuda:90, hip:gfx942, ...; default: the module's ttg.target"
    )
    parser.add_argument(
        "--split-input-file",
        action="store_true",
        help=f"the input is modules between lines '{SEPARATOR}'",
    )
    parser.add_argument("--mlir-print-debuginfo", action="store_true", help="print locations")
    return parser


def main(argv: list[str] | None = None) -> int:
    """Run the tool; returns the exit status: 0, or 1 if any module failed."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    if arguments.status:
        for name, value in vars(native_scan.status()).items():
            print(f"{name:10}{value}")
        return 0
    if arguments.input is None:
        parser.error("the input is missing: a file of TTGIR, or - for stdin")
    try:
        text = (
            sys.stdin.read() if arguments.input == "-" else Path(arguments.input).read_text("utf-8")
        )
    except (OSError, UnicodeDecodeError) as error:
        print(f"triton-scan-opt: error: cannot read {arguments.input}: {error}", file=sys.stderr)
        return 1
    status = 0
    for index, chunk in enumerate(_split(text) if arguments.split_input_file else [text]):
        if index:
            print(SEPARATOR)
        try:
            print(process(chunk, arguments))
        except (OptError, RuntimeError, native_scan.ExtensionError) as error:
            print(f"triton-scan-opt: error: {error}", file=sys.stderr)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
