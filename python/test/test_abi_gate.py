"""The ABI gate accepts what the build makes and refuses what does not fit, part by part.

Everything is real: the installed wheel's libtriton.so, the LLVM headers, g++. The wrong extensions
are small ones, compiled against headers of which one line was changed.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPO / "third_party"), str(REPO / "python")]

import fetch  # noqa: E402
from build_helpers import abi_gate, extension, overlay, steps  # noqa: E402

MODULE = REPO / "python/build_helpers/abi_selftest.mlir"
PASS = """
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
using namespace mlir;
namespace {
struct Tiny : PassWrapper<Tiny, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(Tiny)
  StringRef getArgument() const override { return "tiny"; }
  void getDependentDialects(DialectRegistry &) const override {}
  void runOnOperation() override {}
};
} // namespace
extern "C" __attribute__((visibility("default"))) Pass *make() { return new Tiny; }
"""
REWRITER = """
#include "mlir/IR/PatternMatch.h"
extern "C" __attribute__((visibility("default"))) mlir::OpBuilder *make(mlir::MLIRContext *c) {
  return new mlir::IRRewriter(c);
}
"""


@pytest.fixture(scope="session")
def site() -> Path:
    """The unpacked upstream wheel."""
    return fetch.unpack_wheel()


@pytest.fixture(scope="session")
def headers() -> list[Path]:
    """LLVM's include directories."""
    return fetch.llvm_include_dirs()


@pytest.fixture(scope="session")
def built(site: Path) -> Path:
    """The unstripped extension of the build; built if it is not there."""
    product = extension.build_extension(site, overlay.build_directory(site))
    return product.parent / "unstripped" / product.name


@pytest.fixture(scope="session")
def libtriton(site: Path) -> abi_gate.Binary:
    """libtriton.so as the gate reads it."""
    return abi_gate.read_binary(site / "triton/_C/libtriton.so")


def abi_breaking_header(site: Path, headers: list[Path], build: Path, *options: str) -> Path:
    """The include directory that CMake generates, after configuring only."""
    command = [steps.find_tool("cmake"), "-G", "Ninja", "-S", REPO, "-B", build]
    command += [f"-DTRITON_SITE={site}", f"-DLLVM_INCLUDE_DIRS={';'.join(map(str, headers))}"]
    command += [f"-DCMAKE_MAKE_PROGRAM={steps.find_tool('ninja')}"]
    command += [f"-DPython3_EXECUTABLE={sys.executable}", *options]
    subprocess.run(command, check=True, capture_output=True)
    return build / "generated"


def enabled(generated: Path) -> str:
    text = (generated / "llvm/Config/abi-breaking.h").read_text()
    return re.search(r"^#define LLVM_ENABLE_ABI_BREAKING_CHECKS (\d)$", text, re.M)[1]


@pytest.fixture(scope="session")
def generated(site: Path, headers: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The generated include directory with the right switch."""
    return abi_breaking_header(site, headers, tmp_path_factory.mktemp("configured"))


@pytest.fixture
def compile_extension(site: Path, headers: list[Path], generated: Path, tmp_path: Path):
    """Return compile_extension(source, first_includes=[], *flags) -> path of the shared object."""

    def compile_extension(source: str | Path, first_includes=(), *flags: str) -> Path:
        if isinstance(source, str):
            (tmp_path / "tiny.cpp").write_text(source)
            source = tmp_path / "tiny.cpp"
        output = tmp_path / "tiny.so"
        command = [extension.find_compiler(), "-std=c++20", "-O0", "-w", "-fPIC", "-shared"]
        command += ["-fno-rtti", "-fno-exceptions", "-fvisibility=hidden", "-DNDEBUG", *flags]
        includes = [*first_includes, generated, site / "triton/include", *headers]
        command += [f"-I{d}" for d in includes]
        command += [source, "-o", output, f"-L{site}/triton/_C", "-l:libtriton.so"]
        subprocess.run(command, check=True)
        return output

    return compile_extension


def edited_header(headers: list[Path], name: str, edit, into: Path) -> list[Path]:
    """Include directories in which one header is changed by edit(text)."""
    original = next(d / name for d in headers if (d / name).exists())
    changed = edit(original.read_text())
    assert changed != original.read_text()
    (into / name).parent.mkdir(parents=True)
    (into / name).write_text(changed)
    return [into, original.parent]  # the second for files that it includes from beside itself


def swap(first: str, second: str):
    """An edit that exchanges two pieces of text, each of which occurs once."""

    def edit(text: str) -> str:
        assert text.count(first) == text.count(second) == 1
        return text.replace(first, "\0").replace(second, first).replace("\0", second)

    return edit


def test_accepts_the_build(built: Path, site: Path, tmp_path: Path) -> None:
    """All three parts pass, the vtables were really compared, and the product is stripped."""
    gate = abi_gate.check(built, site, MODULE)
    assert any(
        re.match(r"\(anonymous.*: mlir::Pass and \d{2,} subclasses", c) for c in gate["vtables"]
    )
    output = tmp_path / "out.so"
    arguments = [str(built), "--site", str(site), "--module", str(MODULE), "--output", str(output)]
    assert abi_gate.main([*arguments, "--llvm-version=23.1.4"]) == 0
    sections = subprocess.run(["readelf", "-SW", output], capture_output=True, text=True).stdout
    assert ".dynsym" in sections and ".symtab" not in sections
    record = json.loads(output.with_suffix(".json").read_text())
    assert record["extension_sha256"] == hashlib.sha256(output.read_bytes()).hexdigest()
    assert record["gate"] == gate and gate["symbols"] > 100
    assert record["compilers"] and record["llvm_headers"] == "23.1.4"


def test_switch_is_derived(generated: Path, libtriton: abi_gate.Binary) -> None:
    """The generated header says what libtriton exports."""
    exports = "_ZN4llvm23EnableABIBreakingChecksE" in libtriton.defined
    assert enabled(generated) == str(int(exports))


# (a) symbols


def test_refuses_a_missing_symbol(
    compile_extension, site: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    """One line names the symbol and LLVM_SYSPATH, and an older product is gone."""
    wrong = compile_extension(
        "namespace mlir { class Operation; void notInLibtriton(Operation *); }\n"
        'extern "C" __attribute__((visibility("default")))'
        " void make(mlir::Operation *op) { mlir::notInLibtriton(op); }"
    )
    output = tmp_path / "product.so"
    output.write_text("an older product")
    output.with_suffix(".json").write_text("its record")
    arguments = [str(wrong), "--site", str(site), "--module", str(MODULE), "--output", str(output)]
    assert abi_gate.main(arguments) == 1
    assert not output.exists() and not output.with_suffix(".json").exists()
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert "mlir::notInLibtriton(mlir::Operation*)" in lines[0] and "LLVM_SYSPATH" in lines[0]


def test_refuses_a_wrong_switch(
    compile_extension, site: Path, headers: list[Path], libtriton: abi_gate.Binary, tmp_path: Path
) -> None:
    """Compiled with the other LLVM_ENABLE_ABI_BREAKING_CHECKS, the extension lacks its symbol."""
    build = tmp_path / "configured"
    wrong = abi_breaking_header(site, headers, build, "-DOVERRIDE_ABI_BREAKING_CHECKS=0")
    assert enabled(wrong) == "0"
    made = compile_extension(PASS, [wrong])
    with pytest.raises(abi_gate.AbiMismatch, match="llvm::DisableABIBreakingChecks"):
        abi_gate.check_symbols(abi_gate.read_binary(made), libtriton)


# (b) vtables


def test_accepts_right_vtables(compile_extension, libtriton: abi_gate.Binary) -> None:
    """The control of the tests below: the same sources with the headers as they are."""
    made = abi_gate.read_binary(compile_extension(PASS))
    compared = abi_gate.check_vtables(made, libtriton)
    assert any(c.startswith("(anonymous namespace)::Tiny: mlir::Pass and ") for c in compared)
    made = abi_gate.read_binary(compile_extension(REWRITER))
    assert "mlir::IRRewriter: its own" in abi_gate.check_vtables(made, libtriton)


RUN = "  virtual void runOnOperation() = 0;\n"
NAME = "  virtual StringRef getName() const = 0;\n"
START = "  virtual void startOpModification(Operation *op) {}\n"
CANCEL = "  virtual void cancelOpModification(Operation *op) {}\n"


@pytest.mark.parametrize(
    ("source", "header", "edit", "message"),
    [
        # A pure slot, which only other passes of libtriton name.
        (PASS, "mlir/Pass/Pass.h", swap(RUN, NAME), r"slot 2 .*Tiny.* runOnOperation|getName"),
        (
            PASS,
            "mlir/Pass/Pass.h",
            lambda text: text.replace(RUN, RUN + "  virtual void extra() {}\n"),
            "Tiny has 14 slots; .* mlir::Pass .* have 13",
        ),
        # A class that libtriton has itself.
        (
            REWRITER,
            "mlir/IR/PatternMatch.h",
            swap(START, CANCEL),
            r"mlir::IRRewriter is .*cancelOpModification.* and .*startOpModification",
        ),
    ],
    ids=["order", "size", "same-class"],
)
def test_refuses_another_vtable(
    compile_extension, libtriton: abi_gate.Binary, headers, tmp_path, source, header, edit, message
) -> None:
    """A header that declares the virtual functions differently is caught, and named."""
    wrong = edited_header(headers, header, edit, tmp_path / "edited")
    made = abi_gate.read_binary(compile_extension(source, wrong))
    with pytest.raises(abi_gate.AbiMismatch, match=message):
        abi_gate.check_vtables(made, libtriton)


def test_methods_are_parsed() -> None:
    """Names with templates, anonymous namespaces and parentheses."""
    parse = abi_gate.parse_method
    method = parse("(anonymous namespace)::P<(a)1, b::c>::run(std::function<void (int)>) const")
    assert method == abi_gate.Method(
        "{anonymous}::P<(a)1, b::c>", "run", "run(std::function<void (int)>) const"
    )
    assert parse("mlir::Pass::~Pass()").name == "~"
    assert parse("__cxa_pure_virtual") is None


# (c) self-test

SELF_TEST = f"""
#include "{REPO}/lib/Extension/AbiSelfTest.cpp"
#include "triton/Tools/PluginUtils.h"
static void add(PassManager *pm, const std::vector<std::string> &) {{
  pm->addPass(tt::scan::createAbiSelfTestPass());
}}
static void reg() {{ registerPass(tt::scan::createAbiSelfTestPass); }}
TRITON_PLUGIN_API tt::plugin::PluginInfo *tritonGetPluginInfo() {{
  static tt::plugin::PassInfo pass = {{"scan_abi_selftest", "1", add, reg}};
  static tt::plugin::PluginInfo info = {{
      TRITON_PLUGIN_API_VERSION, "t", "1", &pass, 1, nullptr, 0, nullptr, 0, TRITON_VERSION}};
  return &info;
}}
"""


def test_self_test_refuses_another_switch(
    compile_extension, site: Path, headers: list[Path], tmp_path: Path
) -> None:
    """The wrong switch is caught even when LLVM's own link-time protection is turned off."""
    build = tmp_path / "configured"
    wrong = abi_breaking_header(site, headers, build, "-DOVERRIDE_ABI_BREAKING_CHECKS=0")
    flag = "-DLLVM_DISABLE_ABI_BREAKING_CHECKS_ENFORCING=1"
    made = compile_extension(SELF_TEST, [wrong], flag)
    with pytest.raises(abi_gate.AbiMismatch, match=r"the self-test failed: ."):
        abi_gate.run_self_test(made, site / "triton/_C/libtriton.so", MODULE)


def swap_range_properties(text: str) -> str:
    """Exchange the two fields, of one type, in which a tt.make_range keeps its bounds."""
    before, rest = text.split("class MakeRangeOpGenericAdaptorBase {\n", 1)
    mine, after = rest.split("protected:", 1)
    return (
        f"{before}class MakeRangeOpGenericAdaptorBase {{\n"
        f"{swap('Ty end;', 'Ty start;')(mine)}"
        f"protected:{after}"
    )


def test_self_test_refuses_other_properties(
    compile_extension, site: Path, headers: list[Path], tmp_path: Path
) -> None:
    """tt.make_range with start and end stored in the other order: the message shows both texts."""
    name = "triton/Dialect/Triton/IR/Ops.h.inc"
    wrong = edited_header(
        [site / "triton/include"], name, swap_range_properties, tmp_path / "edited"
    )
    made = compile_extension(SELF_TEST, wrong)
    with pytest.raises(abi_gate.AbiMismatch) as refusal:
        abi_gate.run_self_test(made, site / "triton/_C/libtriton.so", MODULE)
    assert "the headers give `" in str(refusal.value) and "tt.make_range" in str(refusal.value)
    assert "libtriton gives `" in str(refusal.value)


def test_another_python_is_no_mismatch(built: Path, tmp_path: Path) -> None:
    """If libtriton.so itself cannot be imported, the message says that and not LLVM_SYSPATH."""
    (tmp_path / "libtriton.so").write_bytes(b"not for this Python")
    with pytest.raises(abi_gate.CannotCheck, match=r"Python 3\.\d+ .* cannot import .*libtriton"):
        abi_gate.run_self_test(built, tmp_path / "libtriton.so", MODULE)
