"""CI fails if a test is skipped for a reason that is not expected there."""

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]
CONFTEST = Path(__file__).parents[1] / "conftest.py"
EXPECTED = Path(__file__).parents[2] / ".ci/expected-skips.txt"


@pytest.mark.parametrize(
    ("reason", "status"),
    [
        ("needs the extra dense", pytest.ExitCode.OK),
        ("needs the extra docs", pytest.ExitCode.TESTS_FAILED),  # the site is built in this environment
        ("needs the moon", pytest.ExitCode.TESTS_FAILED),
    ],
)
def test_an_unexpected_skip_fails(pytester: pytest.Pytester, reason: str, status: int) -> None:
    tests = pytester.mkdir("tests")
    (tests / "conftest.py").write_text(CONFTEST.read_text(encoding="utf-8"), encoding="utf-8")
    test = f"import pytest\n\ndef test_passes():\n    pass\n\ndef test_one():\n    pytest.skip({reason!r})\n"
    (tests / "test_it.py").write_text(test, encoding="utf-8")
    result = pytester.runpytest_subprocess("-q", "--expected-skips", str(EXPECTED), "-p", "no:cacheprovider", "tests")
    assert result.ret == status
    assert (f"unexpected skip: {reason}" in result.stdout.str()) == (status != pytest.ExitCode.OK)
