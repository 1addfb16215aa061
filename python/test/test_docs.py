"""The documentation: its programs run and print what it says, and what it names exists."""

from __future__ import annotations

import importlib.util
import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import triton
import triton.language as tl
from triton.compiler.errors import CompilationError
from triton.tools.ptx_sim import run_kernel

REPO = Path(__file__).resolve().parents[2]
TOOLS = REPO / "docs" / "tools"
sys.path.insert(0, str(TOOLS))

import blocks  # noqa: E402
import plans  # noqa: E402
import tables  # noqa: E402
import walks  # noqa: E402

PAGES = sorted((REPO / "docs").rglob("*.md"))
PROGRAMS = [page for page in PAGES if blocks.program(page.read_text()).strip()]


def name_of(page: Path) -> str:
    return str(page.relative_to(REPO / "docs"))


@pytest.mark.parametrize("page", PROGRAMS, ids=name_of)
def test_programs_print_what_the_page_says(page):
    text = page.read_text()
    printed = blocks.run(blocks.program(text))
    assert printed == blocks.outputs(text)


def test_there_are_programs():
    names = {name_of(page) for page in PROGRAMS}
    wanted = {"index.md", "tutorial.md", "writing.md", "checking.md", "porting.md", "switches.md"}
    assert names >= wanted


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("other=1.0", "other=0.0"),
        ("0, then, reverse=True)\n        h =", "0, then, reverse=False)\n        h ="),
        ("tile == 0", "tile == BLOCK - 1"),
        ("tiles - 1 - k", "k"),
        (
            "(m_carry[:, None], i_carry[:, None], m, i)",
            "(m, i, m_carry[:, None], i_carry[:, None])",
        ),
        ("(i1 < 0) | ((i2 >= 0) & (v2 > v1))", "v2 > v1"),
        (
            "inside = t[None, :] < length[:, None]",
            "inside = (t[None, :] < stride) & (row < rows)[:, None]",
        ),
    ],
)
def test_the_check_of_the_tutorial_notices(right, wrong):
    """The mistakes that the page names make its check fail, by value and not otherwise."""
    program = blocks.program((REPO / "docs/tutorial.md").read_text())
    assert right in program
    with pytest.raises(blocks.PageError, match="AssertionError: "):
        blocks.run(program.replace(right, wrong, 1))


@triton.jit
def flags_so_far(x, out, tiles, DTYPE: tl.constexpr, BACK: tl.constexpr):
    i = tl.arange(0, 32)
    carry = tl.full([], 0, DTYPE)
    for k in range(tiles):
        at = (tiles - 1 - k) * 32 + i
        flags = tl.load(x + at).to(DTYPE) | carry
        tl.store(out + at, flags)
        carry = tl.sum(tl.where(i == 0, flags, 0), 0)
        if BACK:
            carry = carry.to(flags.dtype)


@pytest.mark.parametrize("dtype", [tl.int1, tl.int8, tl.int16], ids=str)
def test_a_narrow_carry_is_converted_back(dtype):
    """As the tutorial's table says: the message without the conversion, the values with it."""
    x, out = np.zeros(96, np.int8), np.full(96, 7, np.int8)
    x[32] = 1
    arguments, constexprs = [x, out, 3], {"DTYPE": dtype, "BACK": False}
    message = f"variable carry has initial type {dtype} but is re-assigned to int32"
    with pytest.raises(CompilationError, match=message):
        run_kernel(flags_so_far, 1, arguments, constexprs, num_warps=1)
    run_kernel(flags_so_far, 1, arguments, constexprs | {"BACK": True}, num_warps=1)
    assert np.array_equal(out, [1] * 33 + [0] * 63)


def test_the_signature_of_run_kernel_is_printed():
    signature = inspect.signature(run_kernel).replace(return_annotation=inspect.Signature.empty)
    assert f"`run_kernel{signature}`" in (REPO / "docs/checking.md").read_text()


@triton.jit
def product(a, b):
    return a * b


@triton.jit
def maximum(a, b):
    return tl.maximum(a, b)


@triton.jit
def minimum(a, b):
    return tl.minimum(a, b)


@triton.jit
def log_add(m1, s1, m2, s2):
    m = tl.maximum(m1, m2)
    return m, s1 * tl.exp(m1 - m) + s2 * tl.exp(m2 - m)


@triton.jit
def restart(f1, v1, f2, v2):
    return tl.maximum(f1, f2), tl.where(f2 != 0, v2, v1 + v2)


@triton.jit
def first_maximum(v1, i1, v2, i2):
    return tl.where(v2 > v1, v2, v1), tl.where(v2 > v1, i2, i1)


@triton.jit
def padded_one(x, out, n, combine: tl.constexpr, OTHER: tl.constexpr):
    i = tl.arange(0, 64)
    v = tl.load(x + i, mask=i < n, other=OTHER)
    tl.store(out + i, tl.associative_scan(v, 0, combine, reverse=True), mask=i < n)


@triton.jit
def padded_two(x, y, out, n, combine: tl.constexpr, OTHER: tl.constexpr, OTHER_Y: tl.constexpr):
    i = tl.arange(0, 64)
    v, w = tl.load(x + i, mask=i < n, other=OTHER), tl.load(y + i, mask=i < n, other=OTHER_Y)
    _, w = tl.associative_scan((v, w), 0, combine, reverse=True)
    tl.store(out + i, w, mask=i < n)


REAL = 37  # of 64 positions


@pytest.mark.parametrize(
    ("combine", "other", "wanted"),
    [
        (product, 1.0, lambda x: np.cumprod(x[::-1])[::-1]),
        (maximum, float("-inf"), lambda x: np.maximum.accumulate(x[::-1])[::-1]),
        (minimum, float("inf"), lambda x: np.minimum.accumulate(x[::-1])[::-1]),
    ],
    ids=["product", "maximum", "minimum"],
)
def test_padding_of_the_table_is_an_identity(combine, other, wanted):
    x = np.random.default_rng(3).uniform(-2, -0.5, REAL).astype(np.float32)
    out = np.full(REAL, np.nan, np.float32)
    constexprs = {"combine": combine, "OTHER": other}
    run_kernel(padded_one, 1, [x, out, REAL], constexprs, num_warps=1)
    np.testing.assert_allclose(out, wanted(x.astype(np.float64)), rtol=1e-5)


def _restarted(flags: np.ndarray, values: np.ndarray) -> np.ndarray:
    out = values.copy()
    for i in range(len(out) - 2, -1, -1):
        if not flags[i]:
            out[i] += out[i + 1]
    return out


def _latest_argmax(x: np.ndarray, _: np.ndarray) -> np.ndarray:
    return np.array([len(x) - 1 - np.argmax(x[i:][::-1]) for i in range(len(x))])


@pytest.mark.parametrize(
    ("combine", "others", "operands", "wanted"),
    [
        (
            log_add,
            (-1e30, 0.0),
            lambda rng: (rng.standard_normal(REAL), np.ones(REAL)),
            lambda x, _: np.exp(
                np.logaddexp.accumulate(x[::-1])[::-1] - np.maximum.accumulate(x[::-1])[::-1]
            ),
        ),
        (
            restart,
            (0.0, 0.0),
            lambda rng: (rng.integers(0, 2, REAL), rng.integers(-9, 9, REAL)),
            _restarted,
        ),
        (
            first_maximum,
            (-1.0, 1000.0),
            lambda rng: (rng.integers(0, 4, REAL), np.arange(REAL)),
            _latest_argmax,
        ),
    ],
    ids=["log-sum-exp", "segmented sum", "first maximum"],
)
def test_padding_of_the_table_is_an_identity_of_pairs(combine, others, operands, wanted):
    x, y = (v.astype(np.float32) for v in operands(np.random.default_rng(4)))
    out = np.full(REAL, np.nan, np.float32)
    constexprs = {"combine": combine, "OTHER": others[0], "OTHER_Y": others[1]}
    run_kernel(padded_two, 1, [x, y, out, REAL], constexprs, num_warps=1)
    np.testing.assert_allclose(out, wanted(x.astype(np.float64), y), rtol=1e-5)


def test_clipped_sums_are_functions_of_three_numbers():
    """As the page says: two such steps one after the other are one such step."""
    rng = np.random.default_rng(5)
    for _ in range(200):
        h, (s1, s2) = rng.integers(-20, 20), rng.integers(-5, 5, 2)
        (l1, h1), (l2, h2) = np.sort(rng.integers(-9, 9, (2, 2)))
        twice = np.clip(np.clip(h + s1, l1, h1) + s2, l2, h2)
        low, high = np.clip(l1 + s2, l2, h2), np.clip(h1 + s2, l2, h2)
        assert twice == np.clip(h + s1 + s2, low, high)


def test_blocks_compare_and_refuse():
    page = 'x\n```python\nprint(1)\n```\n```text title="Output"\n2\n```\n'
    assert blocks.run(blocks.program(page)) == ["1\n"] != blocks.outputs(page)
    with pytest.raises(blocks.PageError, match="without an Output block"):
        blocks.run(blocks.program(page.replace("Output", "Other")))
    with pytest.raises(blocks.PageError, match="ZeroDivisionError"):
        blocks.run(blocks.program(page.replace("print(1)", "1 / 0")))


# Commands


def commands() -> list[tuple[str, str]]:
    found = []
    for page in [*PAGES, REPO / "README.md"]:
        for block in re.findall(r"^```console\n(.*?)^```", page.read_text(), re.M | re.S):
            lines = [line[2:] for line in block.splitlines() if line.startswith("$ ")]
            lines = [re.sub(r"^(\w+=\S+ )+|#.*", "", line).strip() for line in lines]
            found += [(page.name, line) for line in lines]
    return found


def test_make_targets_exist():
    makefile = (REPO / "Makefile").read_text()
    named = set()
    for page in [*PAGES, REPO / "README.md"]:
        named |= set(re.findall(r"(?:`|^\$ )make ([\w-]+)", page.read_text(), re.M))
    assert {"demo", "release", "docs", "check-docs", "refresh-patches"} <= named
    for target in named:
        assert re.search(rf"^{target}:", makefile, re.M), target


@pytest.mark.parametrize(("page", "command"), commands())
def test_commands_name_what_exists(page, command):
    words = command.removeprefix(".venv/bin/").split()
    if words[:2] == ["python", "-m"]:
        assert importlib.util.find_spec(words[2])
    elif words[0] == "python":
        assert (REPO / words[1]).is_file()
    elif words[0] == "triton-scan-opt":
        from triton.tools import scan_opt

        options = [word for word in words[1:] if word.startswith("--")]
        scan_opt._parser().parse_args([*options, "-"])
        assert all((REPO / word).is_file() for word in words if word.startswith("test/"))
    else:
        assert words[0] in ("make", "pip"), command


# What the pages say of the sources


def sources() -> str:
    """All source text, with neighbouring string literals joined."""
    paths = [*(REPO / "python/triton").rglob("*.py"), *(REPO / "lib").rglob("*.cpp")]
    paths += [*(REPO / "python/build_helpers").glob("*.py"), *(REPO / "third_party").glob("*.py")]
    paths.append(REPO / "setup.py")
    text = "\n".join(path.read_text() for path in paths)
    return re.sub(r'"\s+f?"', "", text).replace("`", "")


def messages() -> list[str]:
    page = (REPO / "docs/switches.md").read_text()
    rows = page[page.index("## Errors") :].splitlines()
    return [m.group(1) for row in rows if (m := re.match(r"\| `(.*?)` \|", row))]


def test_there_are_messages():
    assert len(messages()) >= 25


@pytest.mark.parametrize("message", messages())
def test_messages_are_those_of_the_sources(message):
    text = sources()
    parts = [part for part in re.split(r"…", message) if len(part.strip(" .;,)")) > 2]
    assert parts
    for part in parts:
        assert part.strip(" .") in text, part


def test_every_error_of_a_scan_is_on_the_page():
    """The other way round: a message that scan_checks or a pass can give is documented."""
    page = (REPO / "docs/switches.md").read_text()
    checks = (REPO / "python/triton/language/scan_checks.py").read_text()
    checks = re.sub(r'"\s+f?"', "", checks)
    for text in re.findall(r"raise \w+\(\s*f?\"(.*?)\"", checks):
        start = re.split(r"[{,;]", text.removeprefix("associative_scan: "))[0].strip()
        assert not start or start in page, text
    for path in (REPO / "lib/Conversion").glob("*.cpp"):
        for text in re.findall(r'emitOpError\((".*?)\)', path.read_text(), re.S):
            start = re.sub(r'"\s+"', "", text).strip('"\n ')
            assert start in page, (path.name, start)


def test_every_knob_is_on_the_page():
    page = (REPO / "docs/switches.md").read_text()
    for name, knob in triton.knobs.scan.knob_descriptors.items():
        assert f"triton.knobs.scan.{name}" in page and knob.key in page


@pytest.mark.parametrize("page", [*PAGES, REPO / "README.md"], ids=lambda p: p.name)
def test_files_that_are_named_exist(page):
    folders = "lib|python|patches|third_party|benchmarks|docs|test|examples"
    for code in re.findall(r"`([^`\n]+)`", page.read_text()):
        for name in re.findall(rf"(?:^| )((?:{folders})/[\w./-]+)(?= |$)", code):
            assert (REPO / name).exists(), (name, code)


def test_links_of_the_readme_lead_somewhere():
    """Those of the pages are checked when the site is built."""
    links = re.findall(r"\]\((?!http)([^)#]+)[^)]*\)", (REPO / "README.md").read_text())
    assert "docs/tutorial.md" in links
    for link in links:
        assert (REPO / link).exists(), link


# Drawings and tables


@pytest.mark.parametrize("name", walks.DRAWN)
@pytest.mark.parametrize("reverse", [False, True])
def test_drawings(name, reverse):
    """Drawing checks the steps against the compiler's plan; the picture has every position."""
    svg = walks.draw(name, reverse)
    assert ("reverse scan" in svg) == reverse
    _, _, _, shape, axis, _ = walks.DRAWN[name]
    assert svg.count("<rect") % shape[axis] == 1  # and one for the background


@pytest.fixture(scope="module")
def plan() -> plans.Plan:
    _, kernel, types, (m, n), axis, num_warps = walks.DRAWN["interleaved"]
    constexprs = {"M": m, "N": n, "AXIS": axis, "REVERSE": True}
    return plans.plan_of(kernel, types, constexprs, num_warps)


def test_plan_is_the_compilers(plan):
    assert plan.reverse and plan.shape == (32, 16) and plan.axis == 0
    assert plan.runs == (("lane", 3), ("warp", 1), ("register", 1))
    # Four of a thread's registers are columns; the register bit above them is 16 rows.
    assert [plan.places[i] for i in (0, 1, 8, 16)] == [
        plans.Place(0, 0, 0),
        plans.Place(0, 4, 0),
        plans.Place(0, 0, 1),
        plans.Place(4, 0, 0),
    ]


@pytest.mark.parametrize(
    "change",
    [
        {"shuffles": 23},
        {"exchanges": 2},
        {"runs": (("lane", 4), ("register", 1))},
        {"runs": (("lane", 3), ("warp", 1))},
    ],
)
def test_a_walk_that_is_not_the_plans_is_refused(plan, change):
    walks.Walk(plan)
    altered = plans.Plan(**{**vars(plan), **change})
    with pytest.raises((walks.WalkError, ValueError)):
        walks.Walk(altered)


def test_only_neighbours_are_joined():
    assert walks.join((0, 3), (4, 7)) == (0, 7)
    for earlier, later in (((4, 7), (0, 3)), ((0, 3), (5, 7))):
        with pytest.raises(walks.WalkError):
            walks.join(earlier, later)


def test_tables_have_the_results():
    """Every row of the suite, and a cell compared with the times themselves."""
    results = json.loads((tables.newest_results() / "results.json").read_text())
    table = tables.speeds("scan")
    rows = {t["row"] for t in results["timings"] if t["suite"] == "scan"}
    assert all(f"\n| {row} |" in table for row in rows)
    found = [
        t
        for t in results["timings"]
        if (t["suite"], t["row"], t["contender"]) == ("scan", "add N=128, 1 warp", "ours")
    ]
    speeds = [t["scanned"] / sorted(t["ms"])[len(t["ms"]) // 2] / 1e9 for t in found[:2]]
    assert f"| add N=128, 1 warp | {speeds[0]:.2f} / {speeds[1]:.2f} |" in table
    assert results["machine"]["commit"] in tables.provenance()
    verdicts = tables.targets()
    assert "**missed**" in verdicts or "reached" in verdicts


def test_an_unknown_generator_is_refused():
    with pytest.raises(KeyError):
        tables.expand("{{ no-such-table }}")


def test_places_are_read_from_linear_and_blocked_layouts():
    lane = "[[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]]"
    linear = f"#ttg.linear<{{register = [[1, 0], [2, 0]], lane = {lane}, warp = [], block = []}}>"
    blocked = (
        "#ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [1, 32], warpsPerCTA = [1, 1], "
        "order = [0, 1]}>"
    )
    for encoding in (linear, blocked):
        places = plans.places_of(encoding, [4, 32])
        assert places[3, 5] == plans.Place(3, 5, 0) and places[0, 31] == plans.Place(0, 31, 0)
    with pytest.raises(ValueError, match="no drawing is known"):
        plans.places_of("#ttg.slice<{dim = 0}>", [4])


def test_a_broken_link_fails_the_build(tmp_path):
    """What `make docs` relies on: a link to a missing page or heading is an error."""
    (tmp_path / "index.md").write_text("# Title\n\n[a](b.md) [c](#d)\n")
    options = ["-q", "--fail-on-warning", "--keep-going", "-C", "-D", "extensions=myst_parser"]
    command = [sys.executable, "-m", "sphinx", *options, "-D", "myst_heading_anchors=3"]
    done = subprocess.run([*command, tmp_path, tmp_path / "out"], capture_output=True, text=True)
    assert done.returncode != 0
    assert "b.md" in done.stderr and "'d'" in done.stderr
