"""No cache ever gives a kernel of the other lowering or of another build of it."""

from __future__ import annotations

import concurrent.futures
import json
from pathlib import Path

import pytest
import triton
from kernels import EXAMPLES
from test_knobs import uses_upstream
from triton import native_scan
from triton.backends.compiler import GPUTarget
from triton.runtime import driver
from triton.runtime.jit import MockTensor

CUMSUM = EXAMPLES[0].kernel

COMPILE = """
import json, triton, triton.language as tl
from triton import native_scan
from triton.backends.compiler import GPUTarget
from triton.runtime.cache import triton_key

@triton.jit
def kernel(x, out):
    i = tl.arange(0, 256)
    tl.store(out + i, tl.cumsum(tl.load(x + i), 0, reverse=True))

hits = []
triton.knobs.compilation.listener = lambda *, cache_hit, **_: hits.append(cache_hit)
source = triton.compiler.ASTSource(kernel, signature={"x": "*fp32", "out": "*fp32"})
compiled = triton.compile(source, target=GPUTarget("cuda", 90, 32))
print(json.dumps({
    "hash": compiled.hash, "hit": hits[0], "key": native_scan.cache_key(), "triton_key":
    triton_key(), "flipped": "shfl.sync.bfly" in compiled.asm["ptx"],
}))
"""


class FakeDriver:
    """A driver without a device: JITFunction.warmup compiles with it, nothing is launched."""

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", 90, 32)


@pytest.fixture
def fake_driver():
    previous = driver._active
    driver.set_active(FakeDriver())
    yield
    driver._active = previous


@pytest.fixture
def kernel():
    """A JITFunction with empty in-memory caches."""
    return triton.JITFunction(CUMSUM.fn)


class Float32:
    """Stands for torch.float32, whose name decides the pointer's type."""

    def __str__(self) -> str:
        return "torch.float32"


def warm_up(kernel):
    arguments = [MockTensor("float32"), MockTensor("float32"), True]
    return kernel.warmup(*arguments, grid=(1,))


@pytest.mark.parametrize("how", ["knob", "environment"])
def test_flip_in_a_running_process_recompiles(fake_driver, kernel, monkeypatch, how):
    def choose(native: bool) -> None:
        if how == "knob":
            triton.knobs.scan.native = native
        else:
            monkeypatch.setenv("TRITON_NATIVE_SCAN", "1" if native else "0")

    with triton.knobs.scan.scope():
        choose(True)
        native = warm_up(kernel)
        assert warm_up(kernel) is native
        choose(False)
        upstream = warm_up(kernel)
        assert upstream is not native
        assert warm_up(kernel) is upstream
        choose(True)
        assert warm_up(kernel) is native
    assert not uses_upstream(native)
    assert uses_upstream(upstream)
    assert native.hash != upstream.hash


def test_asynchronous_compilation_keeps_the_setting_of_its_launch(fake_driver, kernel, monkeypatch):
    monkeypatch.setenv("TRITON_ALWAYS_COMPILE", "1")
    executor = DeferredExecutor()
    with triton.knobs.scan.scope():
        triton.knobs.scan.native = False
        with triton.AsyncCompileMode(executor):
            future = warm_up(kernel)
            triton.knobs.scan.native = True
            executor.run_all()
        assert uses_upstream(future.result())
        assert not uses_upstream(warm_up(kernel))


class DeferredExecutor(concurrent.futures.Executor):
    """Runs what was submitted when it is told to."""

    def __init__(self) -> None:
        self.waiting: list = []

    def submit(self, fn, /, *args, **kwargs):
        future = concurrent.futures.Future()
        self.waiting.append((future, fn, args, kwargs))
        return future

    def run_all(self) -> None:
        for future, fn, args, kwargs in self.waiting:
            future.set_result(fn(*args, **kwargs))


def test_a_stored_key_of_another_build_is_not_believed():
    stale = "native-" + "0" * 64
    assert native_scan.resolve(stale) == native_scan.cache_key() != stale
    assert native_scan.resolve("off") == "off"
    assert native_scan.resolve(None) == native_scan.resolve(True) == native_scan.cache_key()


def test_autotuner_tunes_each_lowering(fake_driver, monkeypatch):
    timed = []

    def bench(call, quantiles):
        timed.append(native_scan.is_enabled())
        return [1.0] * 3

    configs = [triton.Config({}, num_warps=n) for n in (1, 2)]
    tuner = triton.autotune(configs, key=[], do_bench=bench)(triton.JITFunction(CUMSUM.fn))
    arguments = [MockTensor("float32"), MockTensor("float32"), True]
    for value in ("1", "0", "1", "0"):
        monkeypatch.setenv("TRITON_NATIVE_SCAN", value)
        tuner.run(*arguments, grid=(1,), warmup=True)
    assert timed == [True, True, False, False]


def test_disk_cache(run_python, make_overlay, extension, tmp_path):
    """Each setting and each build of the extension has an entry of its own and finds it again."""
    rebuilt = tmp_path / "rebuilt.so"
    rebuilt.write_bytes(extension.read_bytes() + b"\0")  # loaders ignore what follows the sections
    seen = {}
    for build, built in (("first", extension), ("second", rebuilt)):
        path = make_overlay(built)
        for setting in ("1", "0"):
            for expected_hit in (False, True):
                done = run_python(COMPILE, path, TRITON_NATIVE_SCAN=setting)
                assert done.returncode == 0, done.stderr
                report = json.loads(done.stdout)
                assert report["hit"] is expected_hit
                assert report["flipped"] is (setting == "0")
            seen[build, setting] = report
    assert len({r["hash"] for r in seen.values()}) == 4
    assert seen["first", "1"]["key"] != seen["second", "1"]["key"]
    # torch.compile keeps its programs under triton_key() alone.
    assert len({r["triton_key"] for r in seen.values()}) == 4
    assert [r["key"] for r in seen.values()].count("off") == 2


def test_key_is_cheap_at_launch():
    """The key of a launch costs a knob's read, not a hash of the extension."""
    assert native_scan.cache_key() is native_scan.cache_key()
    assert Path(native_scan.EXTENSION_PATH).is_file()
