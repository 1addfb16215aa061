"""How hypothesis draws, in all of the fuzzer."""

from __future__ import annotations

import hypothesis
from hypothesis import HealthCheck, Phase


def draws_of(count: int, shrink: bool) -> hypothesis.settings:
    """Return the settings for `count` examples; the first failure is shrunk if asked for."""
    return hypothesis.settings(
        max_examples=count,
        deadline=None,
        database=None,
        # The explain phase would only run the example more often.
        phases=(Phase.generate, Phase.shrink) if shrink else (Phase.generate,),
        suppress_health_check=list(HealthCheck),
        print_blob=False,
        report_multiple_bugs=False,
    )
