"""Builds each mutation of lib/ and runs the fast suite against it: `make mutants`.

    python python/test/mutation [--only TEXT ...] [--seed SEED]

Works on a copy of the tree below build/mutation, where only the changed file is compiled again.
Writes README.md beside this file; with --only, the rows of those mutations.  The exit status is 1
if a mutation is not caught, or if the suite fails without one.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from mutations import DROPPED_BARRIER, MUTATIONS, Mutation, fault

HERE = Path(__file__).resolve().parent
REPO = HERE.parents[2]
sys.path.insert(0, str(REPO / "third_party"))
WORK = REPO / "build" / "mutation"
PROGRAMS = 150
KERNELS = (
    "test_2_exact or test_9_segmented or test_6_across_ctas or test_loop_carried_pairs"
    " or test_each_group or test_remark_where or TestInlinedWhere"
)
KERNEL_FILES = (
    "test_fuzz.py",
    "test_cases.py",
    "test_scan_programs.py",
    "test_scan_loops.py",
    "test_auto_specialize.py",
    "test_noinline.py",
)
_INTRODUCTION = """\
# Mutations

Written by `make mutants`, which makes one deliberate mistake at a time in a copy of `lib/`, builds
it and runs the fast suite against it: the fuzzer (seed {seed}, at most {programs} programs for
NVIDIA, about as many for AMD), up to its first failure; if it finds nothing, or its programs do not
get there, `test_fuzz.py -k test_found` and a few kernels of other tests (`-k "{kernels}"`).
A mutation that nothing catches makes `make mutants` fail. `--only TEXT` renews the rows whose name
has that text; the others may be older.

Without a mutation the fuzzer last checked {scans} scans and the kernels passed.

| mutation | file | caught by |
|---|---|---|
"""


class MutationError(Exception):
    """The run cannot go on; the text says why."""


@dataclass(frozen=True)
class Outcome:
    """caught: what the suite reported, or None if it passed.  scans: how many were fuzzed."""

    caught: str | None
    scans: int


def _copy_tree(target: Path) -> None:
    """Copy the repository's files; those that are the same keep their time, for Ninja."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"],
        cwd=REPO,
        check=True,
        capture_output=True,
    )
    for name in listed.stdout.decode().rstrip("\0").split("\0"):
        source, copy = REPO / name, target / name
        if not source.is_file():
            continue
        data = source.read_bytes()
        if name == "lib/CMakeLists.txt":
            # File by file: a mutation is in one file.
            data = data.replace(b"UNITY_BUILD ON", b"UNITY_BUILD OFF")
        copy.parent.mkdir(parents=True, exist_ok=True)
        if not copy.is_file() or copy.read_bytes() != data:
            copy.write_bytes(data)


def _build(tree: Path) -> Path:
    """Build the extension of the tree and return it.  Raises MutationError."""
    from fetch import unpack_wheel

    command = [sys.executable, str(tree / "python/build_helpers/extension.py")]
    command += [str(WORK / "extension"), "--site", str(unpack_wheel())]
    cache = os.environ.get("TRITON_SCAN_CACHE_DIR", str(REPO / ".cache"))
    result = subprocess.run(
        [*command],
        env=os.environ | {"TRITON_SCAN_CACHE_DIR": cache, "CMAKE_UNITY_BUILD": "OFF"},
        capture_output=True,
        text=True,
    )
    if result.returncode:
        raise MutationError(f"the extension does not build:\n{result.stderr}")
    return WORK / "extension" / "libtriton_scan.so"


def _make_overlay(tree: Path, extension: Path) -> Path:
    """Assemble a triton of the tree's own and return the directory to import it from."""
    code = (
        "import sys; from pathlib import Path; sys.path[:0] = ['python', 'third_party']\n"
        "from build_helpers import overlay\n"
        "print(overlay.assemble(*map(Path, sys.argv[1:3]), 'mutant', Path(sys.argv[3])))"
    )
    from fetch import unpack_wheel

    arguments = [str(unpack_wheel()), str(extension), str(WORK / "overlays")]
    result = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=tree,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return Path(result.stdout.strip()).resolve()


def _put(extension: Path, overlay: Path) -> None:
    """Replace the overlay's extension, which is a file of its own, and its checksum."""
    target = overlay / "triton/_C/libtriton_scan.so"
    target.unlink()
    shutil.copyfile(extension, target)
    digest = hashlib.sha256(target.read_bytes()).hexdigest()
    target.with_suffix(".sha256").write_text(f"{digest}\n")


def _environment(overlay: Path) -> dict[str, str]:
    return os.environ | {
        "PYTHONPATH": str(overlay),
        "TRITON_CACHE_DIR": str(WORK / "cache"),
        "TRITON_DEFAULT_FP_FUSION": "1",
    }


def _fuzz(overlay: Path, tree: Path, seed: int, drop_barrier: bool = False) -> Outcome:
    check = str(tree / "python/test/mutation/check.py")
    command = [sys.executable, check, str(seed), str(PROGRAMS)]
    command += ["--drop-barrier"] * drop_barrier
    checked = subprocess.run(command, env=_environment(overlay), capture_output=True, text=True)
    if checked.returncode:
        asserted = [line for line in checked.stderr.splitlines() if "Assertion" in line]
        how = asserted[0].split("Assertion", 1)[1] if asserted else checked.stderr[-300:]
        return Outcome(f"fuzzer: the compiler aborts: {how.strip()}", 0)
    found = json.loads(checked.stdout.splitlines()[-1])
    if not found["error"]:
        return Outcome(None, found["scans"])
    text = f"fuzzer: {found['error']} after {found['scans']} scans: {found['text']}"
    return Outcome(text, found["scans"])


def _run_kernels(overlay: Path, tree: Path) -> str | None:
    """Return what failed, or None.  Raises MutationError."""
    pytest = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
    files = [str(tree / "python/test" / name) for name in KERNEL_FILES]
    kernels = subprocess.run(
        [*pytest, "-k", f"test_found or {KERNELS}", *files],
        env=_environment(overlay),
        capture_output=True,
        text=True,
    )
    if kernels.returncode == 0:
        return None
    failed = [line for line in kernels.stdout.splitlines() if line.startswith("FAILED")]
    if kernels.returncode > 1:
        raise MutationError(f"pytest did not run:\n{kernels.stdout}{kernels.stderr}")
    return failed[0].split("/")[-1] if failed else "the compiler aborts"


def _run_suite(overlay: Path, tree: Path, seed: int, fuzzed: bool = True) -> Outcome:
    fuzz = _fuzz(overlay, tree, seed) if fuzzed else Outcome(None, 0)
    return fuzz if fuzz.caught else Outcome(_run_kernels(overlay, tree), fuzz.scans)


def _check(mutation: Mutation, tree: Path, overlay: Path, seed: int) -> Outcome:
    """Mutate the tree, build, run the suite and undo the mutation."""
    path = tree / "lib" / mutation.file
    original = path.read_text()
    try:
        path.write_text(original.replace(mutation.old, mutation.new))
        _put(_build(tree), overlay)
        return _run_suite(overlay, tree, seed, mutation.fuzzed)
    finally:
        path.write_text(original)


def _cell(text: str) -> str:
    text = text.split(" at PTX", 1)[0].replace("|", "\\|").replace("<", "&lt;")
    return text if len(text) <= 160 else f"{text[:160]}..."


def _renewed(old: list[str], rows: list[str]) -> list[str]:
    """Return the old rows with those of the same names replaced, and new ones appended."""
    by_name = {row.split(" | ")[0]: row for row in (*old, *rows)}
    return list(by_name.values())


def main() -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--only", nargs="+", help="only the mutations whose name has one of these texts"
    )
    parser.add_argument("--seed", type=int, default=2026)
    options = parser.parse_args()
    tree = WORK / "tree"
    rows, survivors = [], []

    def chosen(name: str) -> bool:
        return not options.only or any(text in name for text in options.only)

    def note(name: str, file: str, outcome: Outcome) -> None:
        caught = outcome.caught or "NOT CAUGHT"
        print(f"[mutants] {name}: {caught}", flush=True)
        rows.append(f"| {name} | {file} | {_cell(caught)} |\n")
        if not outcome.caught:
            survivors.append(name)

    try:
        start = time.monotonic()
        _copy_tree(tree)
        for mutation in MUTATIONS:
            if text := fault(mutation, (tree / "lib" / mutation.file).read_text()):
                raise MutationError(text)
        extension = _build(tree)
        overlay = _make_overlay(tree, extension)
        # The overlay of an earlier run may have kept its last mutation.
        _put(extension, overlay)
        baseline = _run_suite(overlay, tree, options.seed)
        if baseline.caught:
            raise MutationError(f"the suite fails without a mutation: {baseline.caught}")
        print(f"[mutants] without one: {baseline.scans} scans", flush=True)
        if chosen(DROPPED_BARRIER):
            note(DROPPED_BARRIER, "-", _fuzz(overlay, tree, options.seed, drop_barrier=True))
        for mutation in MUTATIONS:
            if chosen(mutation.name):
                note(mutation.name, mutation.file, _check(mutation, tree, overlay, options.seed))
    except MutationError as error:
        print(f"mutants: {error}", file=sys.stderr)
        return 1
    checked, readme = len(rows), HERE / "README.md"
    if options.only:
        lines = readme.read_text().splitlines(keepends=True)
        rows = _renewed(lines[lines.index("|---|---|---|\n") + 1 :], rows)
    introduction = _INTRODUCTION.format(
        seed=options.seed, programs=PROGRAMS, kernels=KERNELS, scans=baseline.scans
    )
    readme.write_text(introduction + "".join(rows))
    minutes = (time.monotonic() - start) / 60
    print(f"[mutants] {checked} mutations, {len(survivors)} not caught, {minutes:.0f} minutes")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
