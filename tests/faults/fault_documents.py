"""Damaged and random files of predictions, answers and prompts: a counted problem or one error."""

from __future__ import annotations

import json
import random
from pathlib import Path

from fault_harness import Campaign, damaged

from qabench.answers import dumps, loads
from qabench.data.predictions import read_predictions
from qabench.errors import InputError
from qabench.io.limits import json_of, toml_of, yaml_of
from qabench.llm.exchange import UnreadableReply, read_reply

ROWS = [{"id": f"q{i}", "answer": {"a": [i, f"x{i} é"], "b": {"c": i / 7}}} for i in range(40)]
LINES = ["\n".join(json.dumps(row, ensure_ascii=bool(i % 2)) for i, row in enumerate(ROWS)).encode()]
LINES.append(json.dumps(ROWS).encode())
REPLY = json.dumps({"choices": [{"message": {"content": "C"}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 3}})
PIECES = [
    "[",
    "]",
    "{",
    "}",
    '"',
    ":",
    ",",
    "1",
    "-",
    "e",
    ".",
    "null",
    "a",
    "\\",
    "u",
    "d83d",
    "\n",
    " ",
    "&a ",
    "*a",
    "=",
]


def damaged_predictions(chance: random.Random, folder: Path) -> str:
    path = folder / "answers.jsonl"
    path.write_bytes(damaged(chance.choice(LINES), chance))
    try:
        found = read_predictions(path)
    except InputError:
        return "InputError"
    return "bad lines counted" if found.bad_lines else "read"


def damaged_reply(chance: random.Random, folder: Path) -> str:
    body = damaged(REPLY.encode(), chance).decode("utf-8", "replace")
    try:
        read_reply(body)
    except UnreadableReply:
        return "unreadable reply"
    return "read"


def random_documents(chance: random.Random, folder: Path) -> str:
    length = chance.choice((3, 10, 40, 3000))
    text = "".join(chance.choices(PIECES, k=length)) if chance.random() < 0.8 else chance.choice(PIECES) * length
    refused = 0
    for parse in (json_of, yaml_of, toml_of, loads):
        try:
            value = parse(text)
        except ValueError:
            refused += 1
            continue
        if parse is loads and loads(dumps(value)) != value and value == value:
            raise AssertionError(f"{text!r:.60} is not equal after writing and reading")
    return "refused by all" if refused == 4 else "read by some"


CAMPAIGNS = [
    Campaign("predictions", "damaged file of predictions", "bad lines counted or InputError", damaged_predictions),
    Campaign("reply", "damaged reply of a model", "reply or UnreadableReply", damaged_reply),
    Campaign("documents", "random JSON, YAML and TOML", "value or ValueError", random_documents),
]
