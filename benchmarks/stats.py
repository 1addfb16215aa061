"""Medians, spreads and ratios of results.json."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable


def spread(values: list[float]) -> float:
    """(max - min) / median."""
    return (max(values) - min(values)) / statistics.median(values)


def geomean(values: Iterable[float]) -> float:
    return math.exp(statistics.fmean(math.log(v) for v in values))


def ratio(above: list[float], below: list[float]) -> float:
    """Median of the rounds' ratios: what drifts from round to round cancels."""
    return statistics.median(a / b for a, b in zip(above, below, strict=True))


class Timings:
    """The timings of results.json by (suite, row, contender, mode)."""

    def __init__(self, results: dict):
        self.by_key = {
            (t["suite"], t["row"], t["contender"], t["mode"]): t for t in results["timings"]
        }

    def rows(self, suite: str) -> list[str]:
        """Names of the rows with timings, in the suite's order."""
        return list(dict.fromkeys(k[1] for k in self.by_key if k[0] == suite))

    def contenders(self, suite: str) -> list[str]:
        return list(dict.fromkeys(k[2] for k in self.by_key if k[0] == suite))

    def ms(self, suite: str, row: str, contender: str, mode: str) -> list[float] | None:
        """The medians of the rounds, or None."""
        found = self.by_key.get((suite, row, contender, mode))
        return found and found["ms"]

    def scanned(self, suite: str, row: str, contender: str, mode: str) -> float | None:
        """Elements scanned in a second, 10**12."""
        found = self.by_key.get((suite, row, contender, mode))
        return found and found["scanned"] / statistics.median(found["ms"]) / 1e9

    def best_cub(self, suite: str, row: str, mode: str) -> list[float] | None:
        """The rounds of CUB's fastest algorithm for the row."""
        found = [
            t["ms"]
            for (s, r, c, m), t in self.by_key.items()
            if (s, r, m) == (suite, row, mode) and c.startswith("cub ")
        ]
        return min(found, key=statistics.median, default=None)
