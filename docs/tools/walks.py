"""Draws scans of real kernels as SVG: `python docs/tools/walks.py DIR` writes DIR/walk-*.svg.

The layout and the plan are the compiler's (plans.py).  The steps are carried out on intervals of
positions, which have to be neighbours each time two are combined, and end with the inclusive prefix
at every position; the shuffles and exchanges drawn have to be as many as the compiler counted.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import walk_kernels
from plans import Plan, plan_of

POINTERS = {"x": "*fp32", "out": "*fp32"}
# name: (title, kernel, argument types, shape, axis, warps)
DRAWN = {
    "rows": (
        "4 registers in each of 4 lanes",
        walk_kernels.scan_rows,
        POINTERS,
        (8, 16),
        1,
        1,
    ),
    "columns": (
        "the whole axis in the registers of one lane",
        walk_kernels.scan_in_loop,
        POINTERS | {"n": "i32"},
        (16, 32),
        0,
        1,
    ),
    "interleaved": (
        "8 lanes, then 2 warps, then 2 registers",
        walk_kernels.scan_rows,
        POINTERS,
        (32, 16),
        0,
        2,
    ),
}

Interval = tuple[int, int]  # first and last position in the direction


@dataclass
class Row:
    """One step: arrows between positions in the direction, and the values it changes."""

    label: str
    arrows: list[tuple[int, int]] = field(default_factory=list)
    changed: dict[int, Interval] = field(default_factory=dict)


class WalkError(Exception):
    """The steps drawn are not those of the compiler."""


def join(earlier: Interval | None, later: Interval) -> Interval:
    """Combine two intervals; they have to be neighbours, the earlier one first."""
    if earlier is None:
        return later
    if earlier[1] + 1 != later[0]:
        raise WalkError(f"{earlier} and {later} are no neighbours")
    return earlier[0], later[1]


class Walk:
    """The steps of a plan, with positions counted in the scan's direction."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.length = plan, len(plan.places)
        self.shuffles = self.exchanges = 0
        self.rows: list[Row] = []
        singles = [(d, d) for d in range(self.length)]
        final, _ = self._run(0, singles)
        finish = Row("every element takes in what goes before its block, in one combination")
        held = {d: value for row in self.rows for d, value in row.changed.items()}
        for d, value in enumerate(final):
            if value != (0, d):
                raise WalkError(f"position {d} ends with {value}")
            if held.get(d, (d, d)) != value:
                finish.changed[d] = value
        size = 1 << plan.runs[0][1]
        finish.arrows = [(d - 1, d) for d in finish.changed if d % size == 0]
        if finish.changed:
            self.rows.append(finish)
        counted = (self.shuffles * plan.rows, self.exchanges)
        if counted != (plan.shuffles, plan.exchanges):
            raise WalkError(f"{counted} shuffles and exchanges drawn, the compiler has {plan}")

    def _run(self, k: int, totals: list[Interval]) -> tuple[list[Interval], list[Interval | None]]:
        """Join the blocks with these totals by run k and the coarser ones.

        Returns the inclusive prefix of each block, and the prefix before it (None: nothing).
        """
        if k == len(self.plan.runs):
            (total,) = totals
            return [total], [None]
        owner, bits = self.plan.runs[k]
        size = 1 << bits
        groups = [totals[i : i + size] for i in range(0, len(totals), size)]
        slots = 1
        for later_owner, later_bits in self.plan.runs[k:]:
            slots <<= later_bits if later_owner == "register" else 0
        inclusive = {
            "register": self._registers,
            "lane": self._lanes,
            "warp": self._warps,
        }[owner](groups)
        if owner == "lane":
            self.shuffles += bits * slots
            # The predecessor's prefix, and the total for whoever is not its last lane.
            self.shuffles += slots * (k > 0)
            is_total_needed = k + 1 < len(self.plan.runs) and self.plan.runs[k + 1][0] != "warp"
            self.shuffles += slots * is_total_needed
        self.exchanges += owner == "warp"
        _, outer = self._run(k + 1, [group[-1] for group in inclusive])
        through, before = [], []
        for group, ahead in zip(inclusive, outer, strict=True):
            through += [join(ahead, prefix) for prefix in group]
            before += [ahead] + [join(ahead, prefix) for prefix in group[:-1]]
        return through, before

    def _one_by_one(self, groups: list[list[Interval]], label: str) -> list[list[Interval]]:
        row, result = Row(label), []
        for group in groups:
            prefixes = [group[0]]
            for own in group[1:]:
                row.arrows.append((prefixes[-1][1], own[1]))
                prefixes.append(join(prefixes[-1], own))
                row.changed[own[1]] = prefixes[-1]
            result.append(prefixes)
        self.rows.append(row)
        return result

    def _registers(self, groups: list[list[Interval]]) -> list[list[Interval]]:
        steps = len(groups[0]) - 1
        words = f"registers: {steps} combination{'s' * (steps > 1)} one after the other; "
        return self._one_by_one(groups, words + "nothing moves between threads")

    def _lanes(self, groups: list[list[Interval]]) -> list[list[Interval]]:
        result = [list(group) for group in groups]
        half = 1
        while half < len(groups[0]):
            row = Row("lanes: one shuffle; the later half of each ")
            row.label += f"{2 * half} takes in the earlier half's total"
            for group in result:
                for start in range(0, len(group), 2 * half):
                    earlier = group[start + half - 1]
                    for lane in range(start + half, start + 2 * half):
                        group[lane] = join(earlier, group[lane])
                        row.arrows.append((earlier[1], group[lane][1]))
                        row.changed[group[lane][1]] = group[lane]
            self.rows.append(row)
            half *= 2
        return result

    def _warps(self, groups: list[list[Interval]]) -> list[list[Interval]]:
        words = "warps: totals through shared memory; each warp takes in those before it"
        return self._one_by_one(groups, words)


CELL, LEFT, ROW, HEAD, GAP = 27, 12, 84, 96, 18
HUES = (210, 140, 40, 275, 0, 180, 95, 320)


class Picture:
    """The SVG of a walk."""

    def __init__(self, title: str, walk: Walk) -> None:
        self.walk, self.plan, self.count = walk, walk.plan, walk.length
        self.parts: list[str] = []
        width = max(2 * LEFT + CELL * self.count, 620)
        height = HEAD + GAP + ROW * len(walk.rows) + 36
        direction = "reverse" if self.plan.reverse else "forward"
        self._text(LEFT, 20, f"{direction} scan: {title}", "t")
        runs = ", ".join(f"{bits} {owner}" for owner, bits in self.plan.runs)
        self._text(LEFT, 38, f"axis bits, finest first: {runs}", "s")
        self._held = {d: (d, d) for d in range(self.count)}
        self._owners(HEAD)
        for i, row in enumerate(walk.rows):
            self._row(HEAD + GAP + ROW * (i + 1), i + 1, row)
        style = (
            "text{font-family:'DejaVu Sans',Arial,sans-serif;fill:#222}"
            ".t{font-size:15px;font-weight:bold}.s{font-size:11px}.n{font-size:11px;"
            "text-anchor:middle}.f{font-size:11px;text-anchor:middle;fill:#999}"
        )
        self.svg = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" role="img" '
            f'aria-label="{direction} scan: {escape(title)}">'
            f"<style>{style}</style>"
            '<defs><marker id="a" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" '
            'markerHeight="6" orient="auto"><path d="M0 0L8 4L0 8z" fill="#c2185b"/></marker>'
            "</defs>"
            f'<rect width="{width}" height="{height}" fill="#fff"/>{"".join(self.parts)}</svg>\n'
        )

    def _position(self, d: int) -> int:
        """The position along the axis of the d-th in the direction, and back."""
        return self.count - 1 - d if self.plan.reverse else d

    def _middle(self, d: int) -> float:
        return LEFT + CELL * (self._position(d) + 0.5)

    def _text(self, x: float, y: float, text: str, kind: str) -> None:
        self.parts.append(f'<text x="{x:g}" y="{y:g}" class="{kind}">{escape(text)}</text>')

    def _cell(self, d: int, y: float, text: str, light: bool) -> None:
        place = self.plan.places[self._position(d)]
        hue = HUES[self._lanes().index(place.lane) % len(HUES)]
        fill = f"hsl({hue},70%,{94 if light else 80}%)"
        x = LEFT + CELL * self._position(d)
        self.parts.append(
            f'<rect x="{x + 1}" y="{y}" width="{CELL - 2}" height="22" rx="2" fill="{fill}" '
            f'stroke="hsl({hue},40%,{75 if light else 45}%)"/>'
        )
        self._text(x + CELL / 2, y + 15, text, "f" if light else "n")

    def _lanes(self) -> list[int]:
        return sorted({place.lane for place in self.plan.places})

    def _owners(self, y: float) -> None:
        """The positions, each element's register, and the lanes and warps below."""
        self._text(LEFT, y - 34, "position, and which register, lane and warp holds it", "s")
        for d in range(self.count):
            place = self.plan.places[self._position(d)]
            self._text(self._middle(d), y - 18, str(self._position(d)), "n")
            self._cell(d, y - 14, f"r{place.register}", False)
        for owner, letter, offset in (("lane", "l", 8), ("warp", "w", 24)):
            values = [getattr(place, owner) for place in self.plan.places]
            start = 0
            for i in range(1, self.count + 1):
                if i < self.count and values[i] == values[start]:
                    continue
                x, width = LEFT + CELL * start + 1, CELL * (i - start) - 2
                self.parts.append(
                    f'<path d="M{x} {y + offset + 3}h{width}" stroke="#888" stroke-width="1.5"/>'
                )
                name = f"{owner} {values[start]}" if i - start > 2 else f"{letter}{values[start]}"
                self._text(x + width / 2, y + offset + 14, name, "n")
                start = i

    def _row(self, y: float, number: int, row: Row) -> None:
        self._text(LEFT, y - 34, f"{number}. {row.label}", "s")
        self._held |= row.changed
        for d, value in self._held.items():
            self._cell(d, y, str(self._position(value[0])), d not in row.changed)
        for source, target in row.arrows:
            a, b = self._middle(source), self._middle(target)
            lift = min(10 + abs(b - a) / 12, 26)
            self.parts.append(
                f'<path d="M{a:g} {y - 1}C{a:g} {y - lift:g} {b:g} {y - lift:g} {b:g} {y - 1}" '
                'fill="none" stroke="#c2185b" stroke-width="1.2" marker-end="url(#a)"/>'
            )


def draw(name: str, reverse: bool) -> str:
    """Compile the kernel of a drawing in DRAWN and return its SVG."""
    title, kernel, types, (m, n), axis, num_warps = DRAWN[name]
    constexprs = {"M": m, "N": n, "AXIS": axis, "REVERSE": reverse}
    return Picture(title, Walk(plan_of(kernel, types, constexprs, num_warps))).svg


def write_all(folder: Path) -> list[Path]:
    """Write every drawing, in both directions."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name in DRAWN:
        for reverse in (False, True):
            path = folder / f"walk-{name}-{'reverse' if reverse else 'forward'}.svg"
            path.write_text(draw(name, reverse))
            written.append(path)
    return written


if __name__ == "__main__":
    print(*write_all(Path(sys.argv[1])), sep="\n")
