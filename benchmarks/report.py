"""The targets, and whether results.json reaches them: `python benchmarks/report.py DIR`."""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from stats import Timings, geomean, ratio, spread

DIRECTIONS = ("forward", "reverse")


@dataclass(frozen=True)
class Target:
    """One line of the table: the ratios by row, the smallest, largest and mean; `reached` is None
    where nothing was measured."""

    text: str
    ratios: dict[str, float]
    reached: bool | None

    def __str__(self) -> str:
        verdict = {None: "not measured", True: "pass", False: "MISS"}[self.reached]
        if not self.ratios:
            return f"{self.text:62} {verdict}"
        low = min(self.ratios, key=self.ratios.get)
        high = max(self.ratios, key=self.ratios.get)
        figures = f"min {self.ratios[low]:.3f}  mean {geomean(self.ratios.values()):.3f}"
        return f"{self.text:62} {figures}  max {self.ratios[high]:.3f}  {verdict}"


def target(text: str, ratios: dict[str, float], holds: Callable[[list[float]], bool]) -> Target:
    """`holds` takes the ratios."""
    return Target(text, ratios, holds(list(ratios.values())) if ratios else None)


def _ratios(pairs: Iterable) -> dict[str, float]:
    """{name: ratio} of (name, times above, times below); what was not measured is left out."""
    return {name: ratio(a, b) for name, a, b in pairs if a and b}


def _sizes(results: dict, kind: str, scans: bool) -> dict[str, tuple]:
    """{kernel: (ours, upstream's)} of one figure."""
    found: dict = {}
    for entry in results["sizes"]:
        if (entry["mode"] != "copy") == scans:
            name = f"{entry['row']} {entry['mode']}"
            found.setdefault(name, {})[entry["contender"]] = entry[kind]
    both = {n: (v.get("ours"), v.get("upstream")) for n, v in found.items()}
    return {n: v for n, v in both.items() if None not in v}


def _growth(timings: Timings) -> dict[str, float]:
    """Time per element over the smallest of the same elements per thread and direction."""
    groups: dict = {}
    for row in timings.rows("growth"):
        length, warps = (int(part.split()[0]) for part in row.split("N=")[1].split(", "))
        for mode in DIRECTIONS:
            if speed := timings.scanned("growth", row, "ours", mode):
                groups.setdefault((length // warps // 32, mode), {})[f"{row} {mode}"] = 1 / speed
    return {
        row: value / min(group.values())
        for group in groups.values()
        for row, value in group.items()
    }


def targets(results: dict) -> list[Target]:
    """The seven targets of the issue, those of several parts in several lines."""
    t = Timings(results)
    scan, memory = t.rows("scan"), t.rows("memory")

    def against(other: str, mode: str) -> dict[str, float]:
        return _ratios(
            (row, t.ms("scan", row, other, mode), t.ms("scan", row, "ours", mode)) for row in scan
        )

    def directions(suite: str) -> dict[str, float]:
        return _ratios(
            (row, t.ms(suite, row, "ours", "reverse"), t.ms(suite, row, "ours", "forward"))
            for row in t.rows(suite)
        )

    cub = _ratios(
        (f"{row} {mode}", t.best_cub("scan", row, mode), t.ms("scan", row, "ours", mode))
        for row in scan
        for mode in DIRECTIONS
    )
    copy = _ratios(
        (f"{row} {mode}", t.ms("memory", row, "ours", "copy"), t.ms("memory", row, "ours", mode))
        for row in memory
        for mode in DIRECTIONS
    )
    compiled: dict = {}
    for entry in results["compile"]:
        compiled.setdefault(entry["contender"], []).append(statistics.median(entry["seconds"]))
    total = {}
    if {"ours", "upstream"} <= compiled.keys():
        total = {"all": sum(compiled["ours"]) / sum(compiled["upstream"])}
    same = _sizes(results, "ptx_sha256", scans=False)

    def smaller(kind: str) -> dict[str, float]:
        return {n: a / b for n, (a, b) in _sizes(results, kind, scans=True).items()}

    def even(values: list[float]) -> bool:
        return min(values) >= 0.98 and max(values) <= 1.02

    return [
        target("1 reverse/forward time, scan: 0.98 to 1.02", directions("scan"), even),
        target("1 reverse/forward time, memory: 0.98 to 1.02", directions("memory"), even),
        target(
            "2 speed over upstream, reverse: mean 1.6, each 1.2",
            against("upstream", "reverse"),
            lambda v: geomean(v) >= 1.6 and min(v) >= 1.2,
        ),
        target(
            "2 speed over the other triton, reverse: mean 4",
            against("other", "reverse"),
            lambda v: geomean(v) >= 4,
        ),
        target(
            "3 speed over upstream, forward: mean 1.25, each 1.0",
            against("upstream", "forward"),
            lambda v: geomean(v) >= 1.25 and min(v) >= 1.0,
        ),
        target("4 speed over CUB's best algorithm: each 1.0", cub, lambda v: min(v) >= 1.0),
        target("5 speed over the kernel without scan: each 0.97", copy, lambda v: min(v) >= 0.97),
        target("6 compile time over upstream's: at most 1", total, lambda v: max(v) <= 1),
        target(
            "6 PTX bytes over upstream's: each at most 1", smaller("ptx"), lambda v: max(v) <= 1
        ),
        target(
            "6 cubin bytes over upstream's: each at most 1", smaller("cubin"), lambda v: max(v) <= 1
        ),
        target(
            "6 kernels without scans: the same PTX (1 = the same)",
            {n: float(a == b) or 1e-9 for n, (a, b) in same.items()},
            lambda v: min(v) == 1,
        ),
        target(
            "7 growth, time per element over the least: at most 1.1",
            _growth(t),
            lambda v: max(v) <= 1.1,
        ),
    ]


def line(results: dict, suite: str, row: str) -> str:
    """One line of progress: 10**12 scanned elements a second, forward/reverse, of each side."""
    t = Timings(results)
    parts = []
    for contender in t.contenders(suite):
        speeds = [t.scanned(suite, row, contender, mode) for mode in ("copy", *DIRECTIONS)]
        if any(speeds):
            parts.append(f"{contender} " + "/".join(f"{s:.3g}" for s in speeds if s))
    return "  ".join(parts)


def details(found: list[Target]) -> str:
    """Every row's ratio, target by target."""
    lines = []
    for one in found:
        lines += ["", str(one)]
        for name, value in sorted(one.ratios.items(), key=lambda item: item[1]):
            lines.append(f"    {value:7.3f}  {name}")
    return "\n".join(lines)


def summary(results: dict, found: list[Target]) -> str:
    """The spread, the checks, the errors and the table of targets."""
    lines = []
    if results["settings"]["smoke"]:
        lines.append("a smoke test on the interpreter: the times below mean nothing")
    if spreads := [spread(t["ms"]) for t in results["timings"]]:
        lines.append(
            f"spread over {results['settings']['repeats']} rounds, (max-min)/median: "
            f"median {statistics.median(spreads):.2%}, largest {max(spreads):.2%}"
        )
    wrong = sum(not c["right"] for c in results["checks"])
    lines.append(f"checks against float64: {len(results['checks'])}, wrong: {wrong}")
    lines += [f"error: {e['what']}: {e['error'][:300]}" for e in results["errors"]]
    for one in found:
        lines.append(str(one))
        if one.reached is False:
            ordered = sorted(one.ratios.items(), key=lambda item: item[1])
            for name, ends in (("lowest", ordered[:3]), ("highest", ordered[:-4:-1])):
                lines.append(f"      {name}: " + "; ".join(f"{v:.3f} {n}" for n, v in ends))
    return "\n".join(lines)


def write(folder: Path, results: dict) -> str:
    """Write folder/report.txt, with every row; return the summary."""
    found = targets(results)
    text = summary(results, found)
    (folder / "report.txt").write_text(f"{text}\n{details(found)}\n")
    return text


if __name__ == "__main__":
    out = Path(sys.argv[1])
    print(write(out, json.loads((out / "results.json").read_text())))
