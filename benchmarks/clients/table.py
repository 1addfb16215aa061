"""clients.json as Markdown: `python benchmarks/clients/table.py DIR/clients.json`."""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))

from stats import geomean, ratio, spread

NATIVE, UPSTREAM = "native", "upstream"
# A result may be this much farther from float64 than with upstream's lowering: another order of
# the same operations rounds otherwise.
SLACK = 1.25
# Differences below this are roundings of float32 that a reference's own rounding may exceed.
FLOOR = 2e-7


def worst(entry: dict, side: str) -> float:
    """The largest difference of a side's results to the reference."""
    return max(entry["errors"][side].values())


def wrong(entry: dict) -> list[str]:
    """Results of the native side that are out of tolerance, or worse than upstream's."""
    errors, found = entry["errors"], []
    for name, error in errors[NATIVE].items():
        allowed = max(errors[UPSTREAM][name] * SLACK, FLOOR)
        if not (error <= entry["tolerance"] and error <= allowed):
            found.append(f"{name}: {error:.2g}, upstream's {errors[UPSTREAM][name]:.2g}")
    return found


def failed(entry: dict) -> bool:
    """Whether a case could not be run, gave wrong results or was not timed for another reason."""
    return "error" in entry or "untimed" in entry or ("errors" in entry and bool(wrong(entry)))


def agreement(entry: dict) -> str:
    """How the two sides' results compare."""
    if found := wrong(entry):
        return f"WRONG {'; '.join(found)}"
    if all(entry["bitwise"].values()):
        return "bitwise equal"
    return f"within {max(entry['apart'].values()):.1e} of each other"


def speedup(entry: dict) -> float | None:
    """Upstream's time over ours, the median of the rounds' ratios."""
    if "ms" not in entry.get(NATIVE, {}):
        return None
    return ratio(entry[UPSTREAM]["ms"], entry[NATIVE]["ms"])


def scan_time(entry: dict, side: str) -> tuple[float, float] | None:
    """Microseconds of the kernels with scans, and of all, in one run."""
    measured = entry[side].get("microseconds")
    if not measured:
        return None
    scans = {name for name, has in entry[side]["kernels"].items() if has}
    return sum(t for n, t in measured.items() if n in scans), sum(measured.values())


def summary(entry: dict) -> str:
    """One line of progress."""
    if "error" in entry:
        return entry["error"]
    if speed := speedup(entry):
        times = [statistics.median(entry[s]["ms"]) for s in (UPSTREAM, NATIVE)]
        return f"{times[0]:.3f} -> {times[1]:.3f} ms, x{speed:.3f}"
    found = agreement(entry) if "errors" in entry else "compiled"
    return f"{found}; prepared in {entry[UPSTREAM]['seconds']} + {entry[NATIVE]['seconds']} s"


def _row(entry: dict) -> list[str]:
    if "error" in entry:
        return [f"not run: {entry['error']}", "", "", "", "", ""]
    cells = ["compiled only", "", "", "", "", ""]
    if "errors" in entry:
        distance = f"{worst(entry, UPSTREAM):.1e} / {worst(entry, NATIVE):.1e}"
        cells[:2] = [agreement(entry), distance]
    if speed := speedup(entry):
        times = [entry[s]["ms"] for s in (UPSTREAM, NATIVE)]
        cells[2] = " / ".join(f"{statistics.median(t):.3f}" for t in times)
        cells[3] = f"{speed:.3f}"
        cells[4] = f"{max(map(spread, times)):.1%}"
        if entry[NATIVE]["timer"] != "graph":
            cells[4] += " (launches)"
    elif "untimed" in entry:
        cells[2] = entry["untimed"]
    scans = [scan_time(entry, s) for s in (UPSTREAM, NATIVE)]
    if all(scans):
        shares = [part / whole for part, whole in scans]
        cells[5] = f"{scans[0][0]:.0f} ({shares[0]:.0%}) / {scans[1][0]:.0f} ({shares[1]:.0%})"
    return cells


def _table(header: list[str], rows: list[list[str]]) -> list[str]:
    return [f"| {' | '.join(cells)} |" for cells in (header, ["---"] * len(header), *rows)]


def _groups(entries: list[dict]) -> list[str]:
    """The cases that solve the same problem, beside one another."""
    groups: dict[str, dict[str, dict]] = {}
    for entry in entries:
        if entry["group"] and speedup(entry):
            name = entry["case"].removesuffix(f", {entry['group']}")
            groups.setdefault(entry["group"], {})[name] = entry
    names = list(dict.fromkeys(name for group in groups.values() for name in group))
    rows = []
    for title, group in groups.items():
        cells = []
        for name in names:
            if name not in group:
                cells.append("")
                continue
            times = [statistics.median(group[name][s]["ms"]) for s in (UPSTREAM, NATIVE)]
            # No lowering of Triton's takes part: both processes measured the same.
            cells.append(
                f"{times[0]:.3f} / {times[1]:.3f}" if group[name]["knob"] else f"{min(times):.3f}"
            )
        rows.append([title, *cells])
    return _table(["problem (sequences x channels x length)", *names], rows) if rows else []


def markdown(results: dict) -> str:
    """The tables of a run, with what is needed to read them."""
    entries = results["cases"]
    versions = results.get("versions", {}).get(NATIVE, {})
    commit = f", commit {results['commit']}" if results["commit"] else ""
    lines = [
        f"{results['date'][:10]}; GPU: {versions.get('gpu')}; torch {versions.get('torch')}, "
        f"Python {versions.get('python')}, Triton {versions.get('triton')} with build "
        f"{versions.get('build', '')[:12]} of the lowering{commit}.",
        "",
        f"Clients: {', '.join(results['packages'])}.",
        "",
        "In every pair of figures the first is with upstream's lowering (TRITON_NATIVE_SCAN=0), "
        "the second with ours.",
        "",
    ]
    header = [
        "case",
        "results",
        "largest difference to float64",
        "time, ms",
        "speed over upstream's lowering",
        "spread",
        "kernels with scans, µs and share",
    ]
    lines += _table(header, [[entry["case"], *_row(entry)] for entry in entries])
    speeds = [speedup(e) for e in entries if e["knob"] and speedup(e)]
    if speeds:
        lines += [
            "",
            f"{len(speeds)} timed cases that use Triton: geometric mean {geomean(speeds):.3f}, "
            f"least {min(speeds):.3f}, most {max(speeds):.3f}.",
        ]
    if groups := _groups(entries):
        lines += ["", "First-order recurrences, milliseconds:", "", *groups]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(markdown(json.loads(Path(sys.argv[1]).read_text())), end="")
