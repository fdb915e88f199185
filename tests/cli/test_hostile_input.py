"""Hostile input is one line and exit code 1 or 2; the shell completes names."""

import base64
import json
from pathlib import Path
from urllib.parse import quote

import pytest
from typer.testing import CliRunner

from qabench.cli import app
from qabench.cli.run import parse_limit, parse_pairs
from qabench.errors import InputError
from qabench.io.redaction import REDACTED, printable
from qabench.llm.endpoint import clean_url
from qabench.llm.exchange import UnreadableReply, read_reply


@pytest.mark.parametrize("text", ["²", "5-3", "0", "1-", "-", "1-2-3", "9" * 5000, ""])
def test_limits_that_are_none(text: str) -> None:
    with pytest.raises(InputError, match="--limit is"):
        parse_limit(text)


@pytest.mark.parametrize("text", ["x={", "x=" + "[" * 5000, "x", "=1", "x=&a [*a]"])
def test_task_arguments_that_are_not_yaml(text: str) -> None:
    with pytest.raises(InputError, match="-T"):
        parse_pairs("-T", [text])


@pytest.mark.parametrize(
    "url", ["http://[x", "x", "http://", "ftp://a", "http://a/v1?api-key=secret", "http://u:p@a", "http://a:99999/v1"]
)
def test_urls_that_are_not_used(url: str) -> None:
    with pytest.raises(InputError, match="the base URL"):
        clean_url(url)


@pytest.mark.parametrize("option", [("--seed", "-1"), ("--resamples", str(10**11)), ("--resamples", "0")])
def test_options_of_compare_out_of_range(option: tuple[str, str]) -> None:
    done = CliRunner().invoke(app, ["compare", "fanoutqa", "a.jsonl", "b.jsonl", "--config", "sample", *option])
    assert isinstance(done.exception, SystemExit) and done.exit_code == 2


def test_escape_sequences_and_markup_in_ids(tmp_path: Path) -> None:
    rows = [{"id": "463f5c17d453c3d3", "answer": "a"}]
    rows += [{"id": "\x1b[31m[/b]\u202ex", "answer": "a"}, {"id": "[red]", "answer": "[/b] \x07"}]
    file = tmp_path / "an[swers.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    done = CliRunner().invoke(app, ["score", "fanoutqa", str(file), "--config", "sample", "--lemmatizer", "simplemma"])
    assert done.exit_code == 0, done.exception
    assert "[/b]" in done.output and "\\x1b[31m" in done.output and not set(done.output) & set("\x1b\x07\u202e")


def test_keys_are_redacted_in_every_form_before_text_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    key = "s3cret/with+signs=0123456789"
    monkeypatch.setenv("EXAMPLE_API_KEY", key)
    shown = printable(f"HTTP 400: the key {key} of https://a.b/v1?api-key=other is wrong\x1b[0m")
    assert shown == "HTTP 400: the key [redacted] of https://a.b/v1 is wrong\\x1b[0m"
    forms = [key, quote(key, safe="")]
    for user in ("", "u", "me", "ann"):
        pair = f"{user}:{key}".encode()
        forms += [base64.b64encode(pair).decode(), base64.urlsafe_b64encode(pair).decode()]
    for form in forms:
        for most in range(1, 60):
            shown = printable(f"the server says {form!r} and more", most)
            assert len(shown) <= most and form[8:16] not in shown, (form, most)
    escaped = ("".join(f"%{ord(char):02x}" for char in key), key.replace("-", "%2D").replace("/", "%252f"))
    escaped += (
        key.replace("=", "\\u003D"),
        key.replace("+", "\\x2b"),
        key.replace("/", "&#x2F;").replace("+", "&#43;"),
    )
    for form in escaped:
        assert printable(f"the server says {form} and more") == "the server says [redacted] and more"
    for header in ("Authorization: Basic abcd", "{'authorization': 'Bearer abcd'}", '"Authorization": "abcd"'):
        assert "abcd" not in printable(header) and REDACTED in printable(header)
    assert printable("authorization of abcd is authorization: ") == "authorization of abcd is authorization: "
    with pytest.raises(UnreadableReply) as caught:
        read_reply("not JSON" + "." * 55 + key)
    assert key[:4] not in str(caught.value)


@pytest.mark.parametrize(
    "command",
    [
        "build", "fetch fanoutqa --mirror", "register fanoutqa --cache-dir", "new mine --output",
        "publish datasets --org me --dry-run --output", "results a.eval --output",
        "run felm --model m --log-dir", "run felm --model m --output", "report fanoutqa a.jsonl --output",
        "score fanoutqa a.jsonl --output", "score fanoutqa a.jsonl --per-item", "compare fanoutqa a.jsonl b.jsonl -o",
        "judge felm m --report", "judge felm m --replies", "judge felm m --output",
        "sample fanoutqa a.jsonl --labels 2 -o",
        "export LOG --output", "export LOG --format eee --output",
        "retrieve a.jsonl --queries x --index", "retrieve a.jsonl --queries x --output", "fastbook retrieve --output",
        "expertqa claims a.jsonl -o", "expertqa attribute --config sample -o",
        "expertqa facts --config sample --model m --base-url http://127.0.0.1:9/v1 -o",
        "fanoutqa submit --metadata a.json --name n --out",
    ],
)  # fmt: skip
def test_no_output_is_named_as_standard_output(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, [*command.split(), "-"])
    assert isinstance(done.exception, InputError), (done.output, done.exception)
    assert "named -" in str(done.exception)
    assert not list(tmp_path.iterdir())
