"""Limits what the clients' autotuners try, and makes both sides use the same configurations.

Clients offer up to a hundred configurations for a kernel.  Here a kernel with a scan tries at most
`scans` of them and any other kernel at most `others`, evenly spaced in the client's list.  The side
that runs upstream's lowering chooses; the native side is given its choices and tries nothing, so
that the two differ in the lowering alone (and by what upstream's lowering likes best).
"""

from __future__ import annotations

import re
from typing import Any

from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import JITFunction

SCAN = re.compile(r"\b(cumsum|cumprod|associative_scan)\(")
NAME = re.compile(r"\b[A-Za-z_]\w*\b")


def has_scan(function: JITFunction, seen: tuple[JITFunction, ...] = ()) -> bool:
    """Whether the source of a kernel, or of a function that it names, has a scan."""
    if SCAN.search(function.src):
        return True
    seen = (*seen, function)
    named = [function.fn.__globals__.get(name) for name in NAME.findall(function.src)]
    callees = [f for f in named if isinstance(f, JITFunction)]
    return any(has_scan(f, seen) for f in callees if not any(f is known for known in seen))


def spread_out(configs: list, limit: int) -> list:
    """At most `limit` elements, evenly spaced."""
    if len(configs) <= limit:
        return configs
    return [configs[int((k + 0.5) * len(configs) / limit)] for k in range(limit)]


class Tuning:
    """Installed in the process; `chosen` maps a kernel and its tuning key to a configuration."""

    def __init__(self, scans: int, others: int):
        self.scans, self.others = scans, others
        self.chosen: dict[str, str] = {}
        self.missing: list[str] = []
        self.given = False

    def give(self, chosen: dict[str, str]) -> None:
        """Use these configurations; a kernel that is not among them is noted in `missing`."""
        self.chosen |= chosen
        self.given = True

    def _prune(self, tuner: Autotuner, configs: list, values: dict[str, Any]) -> list:
        key = [f"{n}={values[n]}" for n in tuner.keys if n in values]
        key += [str(x.dtype) for x in values.values() if hasattr(x, "dtype")]
        name = f"{tuner.base_fn.__name__}({', '.join(key)})"
        for config in configs:
            if self.chosen.get(name) == str(config):
                return [config]
        if self.given:
            self.missing.append(name)
        tuner.untold = name
        function = tuner.fn
        while not isinstance(function, JITFunction):
            function = function.fn
        return spread_out(configs, self.scans if has_scan(function) else self.others)

    def install(self) -> None:
        """Change triton's Autotuner for the rest of the process."""
        prune, run = Autotuner.prune_configs, Autotuner.run

        def prune_configs(tuner: Autotuner, kwargs: dict) -> list:
            # The autotuner forgets `nargs` when a kernel of its own runs within a benchmark.
            values = {**(tuner.nargs or {}), **kwargs}
            return self._prune(tuner, prune(tuner, kwargs), values)

        def run_and_note(tuner: Autotuner, *args: Any, **kwargs: Any) -> Any:
            result = run(tuner, *args, **kwargs)
            if name := tuner.__dict__.pop("untold", None):
                self.chosen[name] = str(tuner.best_config)
            return result

        Autotuner.prune_configs, Autotuner.run = prune_configs, run_and_note
