"""The checks of this folder under pytest: `python -m pytest python/test/gpu`.

run.py runs them faster, and survives kernels that hang.
"""

from __future__ import annotations

import secrets
import sys

import pytest

from gpu import checks, device, run


def _collect() -> list:
    try:
        device.require()
    except device.NoGpu as error:
        pytest.exit(f"test-gpu: error: {error}", returncode=2)
    seed = secrets.randbelow(1 << 31)
    print(f"seed {seed}", file=sys.stderr)
    run.fresh_data(seed)
    checks.prepare()
    device.install()
    return checks.collect()


@pytest.mark.parametrize("check", _collect(), ids=lambda check: str(tuple(check)))
def test_check(check):
    call, _ = checks.resolve(check)
    call()
