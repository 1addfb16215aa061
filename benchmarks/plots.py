"""Draw results.json: `python benchmarks/plots.py DIR` writes DIR/*.png.  Needs matplotlib."""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from stats import Timings

# One colour a contender; the reverse direction is hatched.
COLOURS = {
    "ours": "#d62728",
    "upstream": "#1f77b4",
    "other": "#7f7f7f",
    "cub": "#2ca02c",
    "torch": "#9467bd",
    "copy": "#bcbd22",
}
HATCHES = {"forward": "", "reverse": "///"}


def _labels(results: dict) -> dict[str, str]:
    versions = results["versions"]

    def triton(name: str) -> str:
        return f"Triton {versions.get(name, {}).get('triton', '?')}"

    return {
        "ours": "this build",
        "upstream": f"{triton('upstream')}, upstream's lowering",
        "other": f"{triton('other')}",
        "cub": "CUB BlockScan, best algorithm",
        "torch": "PyTorch flip-cumsum-flip (forward: cumsum)",
        "copy": "the kernel without scan",
    }


def _speed(timings: Timings, suite: str, row: str, name: str, mode: str) -> float | None:
    if name == "copy":
        return timings.scanned(suite, row, "ours", "copy")
    if name != "cub":
        return timings.scanned(suite, row, name, mode)
    names = [c for c in timings.contenders(suite) if c.startswith("cub ")]
    speeds = [timings.scanned(suite, row, c, mode) for c in names]
    return max((s for s in speeds if s), default=None)


def bars(results: dict, suite: str, title: str, unit: str, factor: float, path: Path) -> None:
    """A group of bars for each row: the contenders in both directions; speeds times `factor`."""
    timings, labels = Timings(results), _labels(results)
    rows = timings.rows(suite)
    sides = [
        (name, mode)
        for name in COLOURS
        for mode in HATCHES
        if any(_speed(timings, suite, row, name, mode) for row in rows)
        and (name != "copy" or mode == "forward")
    ]
    figure, axes = plt.subplots(figsize=(max(8, 1.1 * len(rows)), 5.5), layout="constrained")
    width = 0.85 / max(len(sides), 1)
    for k, (name, mode) in enumerate(sides):
        heights = [(_speed(timings, suite, row, name, mode) or 0) * factor for row in rows]
        label = labels[name] + ("" if name == "copy" else f", {mode}")
        at = [i + (k - (len(sides) - 1) / 2) * width for i in range(len(rows))]
        axes.bar(
            at,
            heights,
            width,
            color=COLOURS[name],
            hatch=HATCHES[mode],
            edgecolor="white",
            linewidth=0.3,
            label=label,
        )
    axes.set_xticks(range(len(rows)), [row.replace(", ", "\n") for row in rows], fontsize=8)
    axes.set_ylabel(unit)
    axes.set_title(title)
    axes.grid(axis="y", alpha=0.3)
    figure.legend(loc="outside lower center", fontsize=8, ncols=3)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def growth(results: dict, path: Path) -> None:
    """Time per element against the row's length, one line for each elements per thread."""
    timings = Timings(results)
    figure, axes = plt.subplots(figsize=(8, 5), layout="constrained")
    lines: dict = {}
    for (suite, row, name, mode), entry in timings.by_key.items():
        if suite != "growth":
            continue
        length, warps = (int(part.split()[0]) for part in row.split("N=")[1].split(", "))
        picoseconds = statistics.median(entry["ms"]) * 1e9 / entry["scanned"]
        lines.setdefault((name, mode, length // warps // 32), []).append((length, picoseconds))
    for (name, mode, items), points in sorted(lines.items()):
        style = {"forward": "-", "reverse": "--"}[mode]
        marker = {8: "o", 16: "s"}.get(items, "x")
        label = f"{_labels(results)[name]}, {mode}, {items} a thread"
        axes.plot(
            *zip(*points, strict=True), style, marker=marker, color=COLOURS[name], label=label
        )
    axes.set_xscale("log", base=2)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("elements of a row (1 to 32 warps)")
    axes.set_ylabel("picoseconds an element and scan")
    axes.set_title("Growth")
    axes.grid(alpha=0.3)
    figure.legend(loc="outside lower center", fontsize=8, ncols=2)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def draw(folder: Path) -> list[Path]:
    """Draw what results.json in `folder` holds; return the files."""
    results = json.loads((folder / "results.json").read_text())
    measured = {entry["suite"] for entry in results["timings"]}
    gpu = next((v["gpu"] for v in results["versions"].values() if "gpu" in v), "no GPU")
    rounds = results["settings"]["rounds"]
    written = []
    if "scan" in measured:
        written.append(folder / "scan.png")
        title = f"A tile in registers scanned {rounds} times, fp32, {gpu}"
        bars(results, "scan", title, "10$^{12}$ scanned elements a second", 1, written[-1])
    if "memory" in measured:
        written.append(folder / "memory.png")
        title = f"Load, scan, store, fp32, {gpu}"
        bars(results, "memory", title, "10$^{9}$ scanned elements a second", 1e3, written[-1])
    if "growth" in measured:
        written.append(folder / "growth.png")
        growth(results, written[-1])
    return written


if __name__ == "__main__":
    for file in draw(Path(sys.argv[1])):
        print(file)
