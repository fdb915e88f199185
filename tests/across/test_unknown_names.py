"""Errors for unknown names suggest the nearest valid one, and list all of them."""

import re
from collections.abc import Callable
from typing import Any

import pytest

import qabench
from qabench.benchmarks import benchmark
from qabench.errors import InputError, unknown_name

MISTYPED: list[tuple[Callable[[], Any], str]] = [
    (lambda: qabench.load_dataset("fanoutq"), "unknown benchmark 'fanoutq' (did you mean 'fanoutqa'?); allowed: "),
    (lambda: qabench.load_dataset("fanoutqa", "samples"), "no config 'samples' (did you mean 'sample'?); allowed: "),
    (lambda: qabench.load_dataset("fanoutqa", "sample", split="valid"), "'valid' (did you mean 'validation'?)"),
    (lambda: qabench.load_metric("fanout_ac"), "unknown metric 'fanout_ac' (did you mean 'fanout_acc'?); allowed: "),
    (lambda: qabench.evaluate_predictions("felms", None, []), "'felms' (did you mean 'felm'?)"),
    (lambda: benchmark("fanoutqa").setting("closedbook"), "'closedbook' (did you mean 'closed-book'?); allowed: "),
    (lambda: benchmark("fanoutqa").score_spec("acc.lose"), "'acc.lose' (did you mean 'acc.loose'?); allowed: "),
    (lambda: benchmark("fanoutqa").selected_groups("rogue"), "'rogue' (did you mean 'rouge'?); allowed: scores acc"),
    (lambda: benchmark("felm").checked_options({"reply_formatt": 1}), "(did you mean 'reply_format'?); allowed: "),
]


@pytest.mark.parametrize(("call", "message"), MISTYPED)
def test_the_nearest_name_is_suggested(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        call()


def test_nothing_is_suggested_for_a_different_name() -> None:
    assert str(unknown_name("unknown benchmark", "squad", ["felm"])) == "unknown benchmark 'squad'; allowed: felm"
    assert str(unknown_name("unknown score", 3, [])) == "unknown score 3; allowed: none"
