"""The metadata file of a submission to FanOutQA's leaderboard: its template, and the check of a completed file.

The leaderboard's check fails if a key is missing or unknown, and does not check values. This module also checks values.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qabench.errors import InputError
from qabench.io.files import write_json
from qabench.io.limits import json_of

SETTINGS = ("closedbook", "openbook", "evidenceprovided")
TYPES = ("FOUNDATION", "FINETUNE", "PROMPT", "OTHER")


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem of a submission.

    Attributes:
        kind: the kind of problem in two or three words; problems of the same kind are shown together.
        file: the file with the problem.
        line: the line, from 1; None if the problem concerns the whole file.
        message: what is wrong, what is allowed and how to fix it.
        error: True: the submission is not written; False: it is written with a warning.
    """

    kind: str
    file: str
    line: int | None
    message: str
    error: bool = True

    def as_dict(self) -> dict[str, Any]:
        """The problem as JSON data."""
        return {"kind": self.kind, "file": self.file, "line": self.line, "message": self.message}


def generations_key(setting: str) -> str:
    """The metadata's key that names the answers of a setting."""
    return f"{setting}_generations"


@dataclass(frozen=True, slots=True)
class Key:
    """A key of the metadata: its description, its value in the template, and the check of its values."""

    about: str
    unset: Any
    fits: Callable[[Any], bool]
    required: bool = True


def _text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _address(value: Any) -> bool:
    return value is None or (isinstance(value, str) and re.fullmatch(r"https?://[^\s/]++\S*+", value) is not None)


def _whole_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


ASKED: Mapping[str, Key] = {
    "name": Key("the system's name on the leaderboard, a non-empty string", "", _text),
    "authors": Key("the system's authors, a non-empty string", "", _text),
    "url": Key("a page about the system, an http(s) address, or null", None, _address),
    "citation": Key("a short citation, such as Doe et al., 2026, a non-empty string", "", _text),
    "type": Key(f"one of {', '.join(TYPES)}", "", lambda value: value in TYPES),
    "context": Key("the length of the context in tokens, an integer above 0", 0, _whole_number),
    "is_trained_for_function_calling": Key("true or false", None, lambda value: isinstance(value, bool)),
    "details": Key(
        "anything else, such as the model's exact version, a non-empty string or null",
        None,
        lambda value: value is None or isinstance(value, str),
        required=False,
    ),
}
# The names of the files are filled in when the submission is written.
KEYS: Mapping[str, Key] = {
    **ASKED,
    **{
        generations_key(setting): Key(
            f"the file of the {setting} answers, or null",
            None,
            lambda value: value is None or _text(value),
            required=False,
        )
        for setting in SETTINGS
    },
}


def write_template(path: Path) -> None:
    """Writes a template of the metadata; it does not pass the check until it is completed.

    Raises:
        InputError: the file already exists.
        QabenchError: the file cannot be written.
    """
    if path.exists():
        raise InputError(f"{path} already exists and is not changed; use another path, or remove the file")
    write_json(path, {name: key.unset for name, key in ASKED.items()})


def read_metadata(path: Path, written: Mapping[str, str | None]) -> tuple[dict[str, Any], list[Problem]]:
    """The metadata to submit, and their problems.

    Args:
        path: a JSON file with the keys of ``KEYS``.
        written: for each of ``SETTINGS``, the name of its file of answers, or None.

    Returns:
        The values of the file, with the names in ``written``; empty if the file is not a JSON object.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
        pairs = json_of(text, object_pairs_hook=_Pairs)
    except OSError as error:
        return {}, [Problem("unreadable file", str(path), None, f"cannot read it: {error.strerror or error}")]
    except json.JSONDecodeError as error:
        return {}, [Problem("not JSON", str(path), error.lineno, f"{error.msg}, column {error.colno}")]
    except ValueError as error:
        return {}, [Problem("not JSON", str(path), None, f"not JSON in UTF-8: {error}")]
    if not isinstance(pairs, _Pairs):
        return {}, [Problem("not metadata", str(path), 1, "a JSON object is expected; `--init` writes a template")]
    given = dict(pairs)
    problems = [*_of_keys(path, text, pairs), *_of_values(path, text, given), *_of_files(path, text, given, written)]
    return given | {generations_key(setting): name for setting, name in written.items()}, problems


class _Pairs(list[tuple[str, Any]]):
    """The keys and values of a JSON object, including repeated keys."""


def _of_keys(path: Path, text: str, pairs: _Pairs) -> list[Problem]:
    names = [name for name, _ in pairs]
    allowed = ", ".join(KEYS)
    problems = [
        Problem("missing key", str(path), None, f"the key {name!r} is missing: {key.about}")
        for name, key in KEYS.items()
        if key.required and name not in names
    ]
    for name in dict.fromkeys(names):
        line = _line(text, name)
        if name not in KEYS:
            said = f"the key {name!r} is unknown and would fail the leaderboard's check; allowed: {allowed}"
            problems.append(Problem("unknown key", str(path), line, said))
        if names.count(name) > 1:
            problems.append(Problem("repeated key", str(path), line, f"the key {name!r} occurs more than once"))
    return problems


def _of_values(path: Path, text: str, given: Mapping[str, Any]) -> list[Problem]:
    problems = []
    for name, key in KEYS.items():
        if name in given and not key.fits(given[name]):
            got = "null" if given[name] is None else json.dumps(given[name], default=str)
            said = f"{name!r} is {got:.60}; allowed: {key.about}"
            problems.append(Problem("wrong value", str(path), _line(text, name), said))
    return problems


def _of_files(path: Path, text: str, given: Mapping[str, Any], written: Mapping[str, str | None]) -> list[Problem]:
    problems = []
    for setting, name in written.items():
        key = generations_key(setting)
        named = given.get(key)
        if not _text(named) or named == name:
            continue
        if name is None:
            option = {"closedbook": "--closed-book", "openbook": "--open-book"}.get(setting, "--evidence-provided")
            said = f"{key!r} names {named!r}, but these answers were not given: add {option} FILE, or set it to null"
            problems.append(Problem("answers missing", str(path), _line(text, key), said))
        else:
            said = f"{key!r} names {named!r}; the file is submitted as {name!r}, and the metadata are changed to that"
            problems.append(Problem("file name", str(path), _line(text, key), said, error=False))
    return problems


def _line(text: str, key: str) -> int | None:
    """The line of a key of a flat object."""
    found = re.search(re.escape(json.dumps(key, ensure_ascii=False)) + r"\s*:", text)
    return text.count("\n", 0, found.start()) + 1 if found else None
