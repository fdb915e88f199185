"""The scripts of ExpertQA's authors, executed from a mirror with stand-ins for the packages that they import."""

from __future__ import annotations

import contextlib
import io
import re
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

REPO = "chaitanyamalaviya/ExpertQA"


def script(mirror: Path, name: str) -> Path:
    """The path of a script, such as "modeling/fact_score/factscore.py"."""
    return mirror / REPO / name


def module(name: str, **attributes: Any) -> types.ModuleType:
    """A stand-in for a module; attributes that are not given are functions that return None."""
    made = types.ModuleType(name)
    made.__dict__.update(attributes)
    made.__path__ = []  # type: ignore[attr-defined]
    made.__getattr__ = lambda attribute: lambda *args, **kwargs: None  # type: ignore[method-assign]
    return made


@contextlib.contextmanager
def importing(mirror: Path, modules: Mapping[str, types.ModuleType]) -> Iterator[None]:
    """Temporarily allows imports from the mirror's repository and of stand-ins."""
    folders = [str(mirror / REPO), str(mirror / REPO / "modeling" / "fact_score")]
    with mock.patch.dict(sys.modules, modules), mock.patch.object(sys, "path", [*folders, *sys.path]):
        yield
    for name in [name for name in sys.modules if name.split(".")[0] in ("data_utils", "load_lm", "load_open_ai_model")]:
        del sys.modules[name]


def executed(mirror: Path, name: str, modules: Mapping[str, types.ModuleType], main: str = "oracle") -> dict[str, Any]:
    """The globals of a script after its execution, with ``__name__`` as given."""
    path = script(mirror, name)
    space: dict[str, Any] = {"__name__": main, "__file__": str(path)}
    with importing(mirror, modules), contextlib.redirect_stdout(io.StringIO()):
        exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), space)
    return space


def absl_modules(flags: Any) -> dict[str, types.ModuleType]:
    """absl with the given flags."""
    parts = {
        "app": module("absl.app"),
        "flags": module("absl.flags", FLAGS=flags),
        "logging": module("absl.logging"),
    }
    return {"absl": module("absl", **parts)} | {f"absl.{name}": part for name, part in parts.items()}


class Splitter:
    """split_ans_to_claims.py on examples in memory."""

    def __init__(self, mirror: Path) -> None:
        import spacy

        pipeline = spacy.blank("en")

        class English:
            """spaCy 2's way to add a pipe."""

            create_pipe = staticmethod(lambda name: name)
            add_pipe = staticmethod(lambda name: pipeline.add_pipe(name))
            __call__ = staticmethod(pipeline)

        self.flags = SimpleNamespace()
        retrying = lambda **kwargs: lambda function: function  # noqa: E731
        modules = absl_modules(self.flags) | {
            "openai": module("openai"),
            "nltk": module("nltk"),
            "tqdm": module("tqdm", tqdm=lambda items, *args, **kwargs: items),
            "tenacity": module("tenacity", retry=retrying),
            "spacy": module("spacy"),
            "spacy.lang": module("spacy.lang"),
            "spacy.lang.en": module("spacy.lang.en", English=English),
        }
        self.space = executed(mirror, "modeling/response_collection/split_ans_to_claims.py", modules)
        self.prompt = script(mirror, "prompts/claims_prompt.txt")

    def answers(self, examples: Sequence[dict[str, Any]], file: str = "r1.jsonl", **flags: Any) -> list[Any]:
        """The answers of examples {"question", "answers": {system: answer}} after the script's main."""
        self.flags.__dict__.update(
            {"input_file": file, "output_file": "", "granularity": "sentence", "limit": None}
            | {"prompt_config": str(self.prompt), "split_model_name": "model"} | flags
        )  # fmt: skip
        utils = SimpleNamespace(**vars(self.space["example_utils"]))
        utils.read_examples = lambda path: [SimpleNamespace(**example) for example in examples]
        utils.write_examples = lambda path, rows: None
        with mock.patch.dict(self.space, {"example_utils": utils, "tqdm": lambda items: items}):
            self.space["main"](None)
        return [example["answers"] for example in examples]


def punctuation_splitter(text: str) -> list[str]:
    """A stand-in for NLTK's sentence tokenizer, whose data may be absent: sentences end at . ! or ? before a space."""
    return [part for part in re.split(r"(?<=[.!?])\s+", text.strip()) if part]


def nltk_module(split: Callable[[str], Sequence[str]] = punctuation_splitter) -> types.ModuleType:
    """NLTK with that sentence tokenizer."""
    return module("nltk", sent_tokenize=split, download=lambda name: None)


def pass_attention_mask(network: Any, tokenizer: Any) -> None:
    """Patch ``network.generate`` to pass the mask that transformers 4 made from the padding.

    autoais.py passes none. transformers 5 does not make one, so that padding changes the labels.
    """
    generate = network.generate

    def masked(input_ids: Any, **options: Any) -> Any:
        return generate(input_ids, attention_mask=(input_ids != tokenizer.pad_token_id).long(), **options)

    network.generate = masked


def labeled(
    mirror: Path, folder: Path, claims: Sequence[tuple[str, Sequence[str]]], file: Path, *, patched: bool = True
) -> list[str]:
    """Return the labels of autoais.py, which writes to a file, for (claim, evidence) with the model in a folder."""
    import json

    import torch
    from transformers import AutoTokenizer, T5ForConditionalGeneration

    tokenizer = AutoTokenizer.from_pretrained(folder)
    network = T5ForConditionalGeneration.from_pretrained(folder).eval()
    if patched:
        pass_attention_mask(network, tokenizer)
    pretrained = lambda value: SimpleNamespace(from_pretrained=lambda *args, **kwargs: value)  # noqa: E731
    modules = absl_modules(SimpleNamespace()) | {
        "accelerate": module("accelerate"),
        "tqdm": module("tqdm", tqdm=lambda items: items),
        "nltk": nltk_module(),
        "transformers": module(
            "transformers", T5Tokenizer=pretrained(tokenizer), T5ForConditionalGeneration=pretrained(network)
        ),
    }
    space = executed(mirror, "modeling/auto_attribution/autoais.py", modules)
    Example = space["example_utils"].Example
    rows = [{"claim_string": text, "evidence": list(evidence)} for text, evidence in claims]
    example = Example("q", "a", {"gpt4": {"claims": rows}}, space["example_utils"].ExampleMetadata())
    with (
        mock.patch.object(torch.Tensor, "cuda", lambda tensor: tensor),
        torch.inference_mode(),
        contextlib.redirect_stdout(io.StringIO()),
    ):
        space["score_predictions"]([example], str(file))
    (answer,) = json.loads(file.read_text(encoding="utf-8"))["answers"].values()
    return [claim["autoais_label"] for claim in answer["claims"]]
