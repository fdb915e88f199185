"""Commands in messages that install an extra work where this qabench was installed from."""

import re
import warnings
from pathlib import Path
from typing import Any

import pytest

from qabench import errors
from qabench.cli.output import warn
from qabench.errors import FallbackWarning, MissingExtra, installable

ROOT = Path(__file__).parents[2]
HINT = "BLEURT needs torch: pip install 'qabench[bleurt]' nltk"
FROM_GIT = {"url": "https://github.com/qabench/qabench", "vcs_info": {"vcs": "git", "commit_id": "abc1"}}


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        ({}, "pip install 'qabench[bleurt]' nltk"),
        ({"url": "file:///my%20code/qabench", "dir_info": {"editable": True}}, "-e '/my code/qabench[bleurt]' nltk"),
        ({"url": "file:///code/qabench", "dir_info": {}}, "'qabench[bleurt] @ file:///code/qabench' nltk"),
        (FROM_GIT, "'qabench[bleurt] @ git+https://github.com/qabench/qabench@abc1' nltk"),
        ({"url": "file:///x/qabench-0.2.0-py3-none-any.whl", "archive_info": {}}, "@ file:///x/qabench-0.2.0-py3"),
    ],
)
def test_a_command_names_where_qabench_is_from(
    origin: dict[str, Any], command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(errors, "install_origin", lambda: origin)
    assert command in str(MissingExtra(HINT)) and command in installable(HINT)
    assert installable(HINT.replace("'", '"')).count("bleurt") == 1
    with pytest.warns(FallbackWarning, match=re.escape(command)):
        warnings.warn(HINT, FallbackWarning, stacklevel=1)
    warn(HINT)
    assert command in capsys.readouterr().err


def test_all_commands_have_the_form_that_is_replaced() -> None:
    files = [path for folder in ("src", "retrieval", "metrics") for path in (ROOT / folder).rglob("*.py")]
    for path in files:
        for command in re.findall(r"pip install [^\n]*?qabench\[[\w{},-]+\].?", path.read_text(encoding="utf-8")):
            assert re.search(r"""pip install (['"])qabench\[[\w{},-]+\]\1""", command), f"{path}: {command}"
