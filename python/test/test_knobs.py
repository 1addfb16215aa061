"""triton.knobs.scan.native and TRITON_NATIVE_SCAN choose the lowering."""

from __future__ import annotations

import pytest
import triton
from kernels import EXAMPLES
from triton import native_scan
from triton.backends.compiler import GPUTarget
from triton.tools.asm_counts import ptx_opcodes

CUMSUM = EXAMPLES[0]


def uses_upstream(compiled) -> bool:
    """Upstream reverses by shuffles with an exclusive or; the native lowering has none."""
    opcodes = ptx_opcodes(compiled.asm["ptx"])
    assert any(op.startswith("shfl.") for op in opcodes)
    return any(op.startswith("shfl.sync.bfly") for op in opcodes)


def compile_reverse():
    source = triton.compiler.ASTSource(
        CUMSUM.kernel, signature=CUMSUM.signature, constexprs={"REVERSE": True}
    )
    return triton.compile(source, target=GPUTarget("cuda", 90, 32))


def test_on_by_default():
    assert triton.knobs.scan.native is True
    assert native_scan.is_enabled()
    compiled = compile_reverse()
    assert not uses_upstream(compiled)
    assert compiled.metadata.native_scan.startswith("native-")


@pytest.mark.parametrize("value", ["0", "false", "off"])
def test_environment_turns_it_off(monkeypatch, value):
    monkeypatch.setenv("TRITON_NATIVE_SCAN", value)
    assert triton.knobs.scan.native is False
    assert not native_scan.is_enabled()
    compiled = compile_reverse()
    assert uses_upstream(compiled)
    assert compiled.metadata.native_scan == "off"


def test_assignment_wins_over_the_environment_and_is_undone(monkeypatch):
    monkeypatch.setenv("TRITON_NATIVE_SCAN", "1")
    with triton.knobs.scan.scope():
        triton.knobs.scan.native = False
        assert uses_upstream(compile_reverse())
    assert not uses_upstream(compile_reverse())


def test_knob_is_documented():
    assert triton.knobs.scan.__doc__
    assert set(triton.knobs.scan.knobs) == {"native", "remarks"}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.title)
@pytest.mark.parametrize("target", [GPUTarget("cuda", 90, 32), GPUTarget("hip", "gfx942", 64)])
def test_both_settings_compile_every_example(compile_kernel, example, target):
    for reverse in (False, True):
        for native in (True, False):
            compiled = compile_kernel(
                example.kernel,
                example.signature,
                {"REVERSE": reverse},
                target,
                native,
                num_warps=example.num_warps,
            )
            assert "tt.scan" in compiled.asm["ttgir"]
            assert ("native-" in compiled.metadata.native_scan) == native
