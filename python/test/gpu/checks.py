"""The checks of each point, collected from the tests of the simulator and from this folder.

A check is a test function with one set of parameters. Functions that take fixtures inspect code or
need the simulator, and are left out.
"""

from __future__ import annotations

import collections
import fnmatch
import importlib.util
import inspect
import itertools
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import NamedTuple

from triton import native_scan

HERE = Path(__file__).resolve().parent

# Patterns of "module.function" or "module.Class.method".
POINTS = {
    "1 across CTAs": (
        "gpu.larger_newer.test_1_*",
        "test_clusters.*",
        "test_cases.test_6_*",
        "test_gluon.test_across_ctas",
        "test_warp_specialize.test_partitions_scan_across_ctas",
    ),
    "2 after a dot": (
        "gpu.larger.test_2_*",
        "test_after_dot.*",
        "test_cases.test_5_*",
        "test_scan_programs.test_matrix_product*",
    ),
    "3 control flow": (
        "gpu.larger.test_3_*",
        "gpu.specialized.*",
        "test_warp_specialize.*",
        "test_noinline.*",
        "test_scan_programs.*",
        "test_scan_loops.*",
    ),
    "5 Gluon": ("test_gluon.*",),
    "7 tl.flip": ("gpu.larger_newer.test_7_*", "test_flip.*"),
    "cases.md": ("test_cases.*",),
    "fuzzed": ("gpu.fuzzed.*",),
}

# Why checks do not apply to the Triton of the source base: patterns of those of POINTS, or of the
# text that resolve() returns.
NO_CLUSTERS = "that Triton cannot share totals between CTAs"
NO_GLUON = "that Triton has no Gluon"
NO_FLIPS = "tl.flip is upstream's own there, for the last axis alone"
NO_PROMOTION = "tl.cumsum does not promote narrow integers and bf16 there"
NEWER = {
    "gpu.larger_newer.test_1_*": NO_CLUSTERS,
    "test_clusters.*": NO_CLUSTERS,
    "test_gluon.test_across_ctas": NO_CLUSTERS,
    "test_cases.test_6_across_ctas(*": NO_CLUSTERS,
    "test_noinline.TestInlinedWhereItCrossesCtas.*": NO_CLUSTERS,
    "test_scan_programs.test_only_neighbours_are_combined(*num_ctas=2*": NO_CLUSTERS,
    "test_warp_specialize.*": NO_GLUON,
    "gpu.specialized.*": NO_GLUON,
    "test_gluon.*": NO_GLUON,
    "gpu.larger_newer.test_7_*": NO_FLIPS,
    "test_flip.*": NO_FLIPS,
    "test_after_dot.*axis=0, what=flip*": NO_FLIPS,
    "test_after_dot.*axis=0, what=both*": NO_FLIPS,
    "gpu.larger.test_2_programs(axis=0, what=flip*": NO_FLIPS,
    "gpu.larger.test_2_programs(axis=0, what=both*": NO_FLIPS,
    "gpu.larger.test_2_random_factors(*axis=0*": NO_FLIPS,
    "test_cases.test_10_dtypes(*int8*": NO_PROMOTION,
    "test_cases.test_10_dtypes(*int16*": NO_PROMOTION,
    "test_cases.test_10_ranks_and_axes(*": NO_PROMOTION,
    "test_cases.test_10_rounding(dtype=bf16*": NO_PROMOTION,
}


class Check(NamedTuple):
    """One call: parameter set number `index` of a test function."""

    point: str
    module: str
    name: str
    index: int


def _stand_in() -> ModuleType:
    """Return what test modules need of pytest in order to be imported, where there is none."""
    pytest = ModuleType("pytest")

    def mark(name: str) -> Callable:
        def with_arguments(*args, **kwargs):
            def decorate(target):
                marks = [*getattr(target, "pytestmark", [])]
                target.pytestmark = [*marks, SimpleNamespace(name=name, args=args, kwargs=kwargs)]
                return target

            return decorate

        return with_arguments

    class Marks:
        __getattr__ = staticmethod(mark)

    pytest.mark = Marks()
    pytest.fixture = lambda *args, **_: args[0] if args else (lambda function: function)
    pytest.param = lambda *values, **_: SimpleNamespace(values=values, marks=())
    return pytest


def prepare() -> None:
    """Make the test modules importable."""
    for folder in (HERE.parent, HERE.parent.parent.parent / "examples"):
        if str(folder) not in sys.path:
            sys.path.insert(0, str(folder))
    try:
        import pytest  # noqa: F401
    except ImportError:
        sys.modules["pytest"] = _stand_in()


def _parameters(function: Callable, owner: type | None) -> list[dict] | None:
    """Return the parameter sets of a test, or None where it takes fixtures."""
    marks = [*getattr(owner, "pytestmark", []), *getattr(function, "pytestmark", [])]
    axes = []
    for mark in marks:
        if mark.name != "parametrize":
            continue
        names = mark.args[0]
        if isinstance(names, str):
            names = [name.strip() for name in names.split(",")]
        axis = [dict(zip(names, _values(v, len(names)), strict=True)) for v in mark.args[1]]
        axes.append(axis)
    sets = [
        {name: value for part in parts for name, value in part.items()}
        for parts in itertools.product(*axes)
    ]
    wanted = set(inspect.signature(function).parameters) - ({"self"} if owner else set())
    return sets if wanted == set(sets[0]) else None


def _values(entry: object, count: int) -> tuple:
    """Return the values of one entry of parametrize()."""
    if hasattr(entry, "values") and hasattr(entry, "marks"):  # of pytest.param()
        return entry.values
    return (entry,) if count == 1 else entry


def _functions(module: ModuleType) -> dict[str, tuple[Callable, type | None]]:
    found: dict[str, tuple[Callable, type | None]] = {}
    for name, value in vars(module).items():
        if name.startswith("test_") and inspect.isfunction(value):
            found[name] = (value, None)
        elif name.startswith("Test") and inspect.isclass(value):
            for method, function in vars(value).items():
                if method.startswith("test_"):
                    found[f"{name}.{method}"] = (function, value)
    return found


def _reason(text: str) -> str | None:
    """Return why a pattern or a check does not apply to the source base."""
    return next((why for key, why in NEWER.items() if fnmatch.fnmatch(text, key)), None)


def collect() -> list[Check]:
    """Return all checks; one that serves several points is listed with each.

    Prints a line if the fuzzer's programs are left out, for want of hypothesis.
    """
    checks = []
    points = dict(POINTS)
    if importlib.util.find_spec("hypothesis") is None:
        print("the fuzzer's programs are left out: hypothesis cannot be imported", file=sys.stderr)
        del points["fuzzed"]
    for point, patterns in points.items():
        for pattern in patterns:
            module = pattern.rpartition(".test_")[0] or pattern.rpartition(".")[0]
            if native_scan.is_built_in() and _reason(pattern):
                print(f"{pattern} is left out: {_reason(pattern)}", file=sys.stderr)
                continue
            for name, (function, owner) in _functions(importlib.import_module(module)).items():
                if not fnmatch.fnmatch(f"{module}.{name}", pattern):
                    continue
                sets = _parameters(function, owner) or []
                checks += [Check(point, module, name, index) for index in range(len(sets))]
    if native_scan.is_built_in():
        texts = {check: resolve(check)[1] for check in checks}
        for why, count in collections.Counter(filter(None, map(_reason, texts.values()))).items():
            print(f"{count} checks are left out: {why}", file=sys.stderr)
        checks = [check for check in checks if not _reason(texts[check])]
    return list(dict.fromkeys(checks))


def resolve(check: Check) -> tuple[Callable[[], None], str]:
    """Return what runs a check, and its text."""
    module = importlib.import_module(check.module)
    function, owner = _functions(module)[check.name]
    values = _parameters(function, owner)[check.index]
    if owner:
        function = getattr(owner(), function.__name__)
    shown = ", ".join(f"{k}={getattr(v, '__name__', v)}" for k, v in values.items())
    return lambda: function(**values), f"{check.module}.{check.name}({shown})"
