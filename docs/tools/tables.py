"""The tables of the pages that come from files: benchmark results and what the sources say."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPO / "benchmarks" / "clients"))
sys.path.insert(0, str(REPO / "benchmarks"))
sys.path.insert(0, str(REPO / "python"))

import report  # noqa: E402
import table  # noqa: E402
from stats import Timings  # noqa: E402

NAMES = {
    "ours": "this build",
    "upstream": "Triton {}, upstream's lowering",
    "other": "Triton {}",
    "cub": "CUB's best BlockScan",
    "torch": "PyTorch",
}


def newest_results() -> Path:
    """The folder of the newest results; they are named by machine and date."""
    folders = [path.parent for path in (REPO / "benchmarks" / "results").glob("*/results.json")]
    return max(folders, key=lambda folder: folder.name[-10:])


def _results() -> dict:
    return json.loads((newest_results() / "results.json").read_text())


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] + ["--:"] * (len(head) - 1), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _speed(timings: Timings, suite: str, row: str, side: str, mode: str) -> float | None:
    if side == "cub":
        names = [name for name in timings.contenders(suite) if name.startswith("cub ")]
        speeds = [timings.scanned(suite, row, name, mode) for name in names]
        return max(filter(None, speeds), default=None)
    return timings.scanned(suite, row, side, mode)


def speeds(suite: str) -> str:
    """A row for each row of a suite: forward / reverse of each side, 10**12 elements a second."""
    results = _results()
    timings, versions = Timings(results), results["versions"]
    rows = {}
    for row in timings.rows(suite):
        for side in NAMES:
            pair = [_speed(timings, suite, row, side, mode) for mode in report.DIRECTIONS]
            if all(pair):
                rows.setdefault(row, {})[side] = " / ".join(f"{speed:.2f}" for speed in pair)
    sides = [side for side in NAMES if any(side in cells for cells in rows.values())]
    names = [NAMES[side].format(versions.get(side, {}).get("triton", "")) for side in sides]
    cells = [[row, *(found.get(side, "") for side in sides)] for row, found in rows.items()]
    return _table(["forward / reverse", *names], cells)


def targets() -> str:
    """The targets that the project set itself, and whether the results reach them."""
    rows = []
    for target in report.targets(_results()):
        values = list(target.ratios.values())
        verdict = {None: "not measured", True: "reached", False: "**missed**"}[target.reached]
        figures = ["", "", ""]
        if values:
            figures = [f"{v:.3f}" for v in (min(values), report.geomean(values), max(values))]
        rows.append([target.text, *figures, verdict])
    return _table(["ratio, and its target", "least", "mean", "largest", ""], rows)


def provenance() -> str:
    """One sentence on where the figures are from."""
    results = _results()
    machine, settings = results["machine"], results["settings"]
    versions = results["versions"]["ours"]
    return (
        f"Measured on {machine['date'][:10]} at commit `{machine['commit']}` on one "
        f"{versions['gpu']} (driver {machine['driver'].split(',')[0]}, torch {versions['torch']}), "
        f"each figure the median of {settings['repeats']} rounds. Every row is in "
        f"`{(newest_results() / 'report.txt').relative_to(REPO)}` and `results.json` beside it."
    )


def clients() -> str:
    """The tables of the newest run of the clients."""
    found = (REPO / "benchmarks" / "results").glob("*/clients.json")
    if newest := max(found, key=lambda path: path.parent.name[-10:], default=None):
        text = table.markdown(json.loads(newest.read_text()))
        return f"{text}\nFrom `{newest.relative_to(REPO)}`.\n"
    return "No run on a GPU has been recorded yet; the tables will be generated from its results."


def version() -> str:
    """The version of the wheel that this tree builds."""
    from build_helpers import content

    return content.VERSION


def page(name: str) -> str:
    """The name of a page for the menu, or nothing while the page does not exist."""
    return name if (REPO / "docs" / f"{name}.md").is_file() else ""


def source(path: str) -> str:
    """A Python file of the repository, as a code block."""
    text = (REPO / path).read_text()
    return f"```python\n{text}```"


def changelog() -> str:
    """CHANGELOG.md, its title left out."""
    return (REPO / "CHANGELOG.md").read_text().partition("\n")[2]


def simulator() -> str:
    """What the simulator's README says of how it runs, what it reports and what it lacks."""
    text = (REPO / "python/triton/tools/ptx_sim/README.md").read_text()
    return text[text.index("## How it runs") :]


GENERATORS = {
    "simulator": simulator,
    "speeds": speeds,
    "targets": targets,
    "provenance": provenance,
    "clients": clients,
    "page": page,
    "source": source,
    "changelog": changelog,
}


def expand(markdown: str) -> str:
    """Replace each `{{ name argument }}` by what the generator of that name returns.

    Raises KeyError for a name that is not in GENERATORS.
    """

    def made(match: re.Match) -> str:
        name, *arguments = match.group(1).split()
        return GENERATORS[name](*arguments)

    return re.sub(r"^\{\{ (.*?) \}\}$", made, markdown, flags=re.MULTILINE)
