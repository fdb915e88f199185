"""The scripts of ExpertQA's authors, executed from a mirror with stand-ins for the packages that
they import.
"""

import ast
import contextlib
import io
import json
import re
import sys
import types
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

REPO = "chaitanyamalaviya/ExpertQA"
REAL = {*sys.stdlib_module_names, "bs4", "numpy", "rank_bm25", "torch"}
OWN = {"data_utils", "load_lm", "load_open_ai_model"}  # modules of the authors


class StandIn(types.ModuleType):
    """A stand-in for a module, and for everything in it: a call returns its first argument, or else
    the stand-in.
    """

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return StandIn(name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return args[0] if args else self


def module(name: str, **attributes: Any) -> StandIn:
    """A stand-in for a module with these attributes."""
    stand_in = StandIn(name)
    vars(stand_in).update(attributes, __path__=[])
    return stand_in


def script(mirror: Path, name: str) -> Path:
    """The path of a script, such as "modeling/fact_score/factscore.py"."""
    return mirror / REPO / name


def annotated_rows(mirror: Path) -> list[dict[str, Any]]:
    """The 436 annotated rows of two splits."""
    files = [mirror / REPO / "data/lfqa" / name for name in ("rand_val.jsonl", "rand_test.jsonl")]
    return [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").split("\n") if line]


def _imported(folder: Path) -> set[str]:
    """The names of the packages and modules that the scripts in a folder import, and that are
    replaced.
    """
    names: set[str] = set()
    for path in folder.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                names.add(node.module)
    names |= {name.rpartition(".")[0] or name for name in names}
    return {name for name in names if name.partition(".")[0] not in REAL | OWN}


def executed(
    mirror: Path, name: str, modules: Mapping[str, types.ModuleType] | None = None, main: str = "oracle"
) -> dict[str, Any]:
    """The globals of a script after its execution, with ``__name__`` as given, and these stand-ins
    for modules.
    """
    path = script(mirror, name)
    space: dict[str, Any] = {"__name__": main, "__file__": str(path)}
    stand_ins = {imported: module(imported) for imported in _imported(path.parent)} | dict(modules or {})
    folders = [str(mirror / REPO), str(path.parent)]
    with (
        mock.patch.dict(sys.modules, stand_ins),
        mock.patch.object(sys, "path", [*folders, *sys.path]),
        contextlib.redirect_stdout(io.StringIO()),
    ):
        exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), space)
    for imported in [imported for imported in sys.modules if imported.partition(".")[0] in OWN]:
        del sys.modules[imported]
    return space


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
        modules = {
            "absl": module("absl", flags=module("flags", FLAGS=self.flags)),
            "spacy.lang.en": module("spacy.lang.en", English=English),
        }
        self.space = executed(mirror, "modeling/response_collection/split_ans_to_claims.py", modules)
        self.prompt = script(mirror, "prompts/claims_prompt.txt")

    def answers(self, examples: Sequence[dict[str, Any]], file: str = "r1.jsonl") -> list[Any]:
        """The answers of examples {"question", "answers": {system: answer}} after the script's
        main.
        """
        self.flags.__dict__.update(
            {"input_file": file, "output_file": "", "granularity": "sentence", "limit": None}
            | {"prompt_config": str(self.prompt), "split_model_name": "model"}
        )  # fmt: skip
        utils = SimpleNamespace(**vars(self.space["example_utils"]))
        utils.read_examples = lambda path: [SimpleNamespace(**example) for example in examples]
        utils.write_examples = lambda path, rows: None
        with mock.patch.dict(self.space, {"example_utils": utils}):
            self.space["main"](None)
        return [example["answers"] for example in examples]


def punctuation_splitter(text: str) -> list[str]:
    """A stand-in for NLTK's sentence tokenizer, whose data may be absent: sentences end at . ! or ?
    before a space.
    """
    return [part for part in re.split(r"(?<=[.!?])\s+", text.strip()) if part]


def pass_attention_mask(network: Any, tokenizer: Any) -> None:
    """Patch ``network.generate`` to pass the mask that transformers 4 made from the padding.

    autoais.py passes none. transformers 5 does not make one, so that padding changes the labels.
    """
    generate = network.generate

    def masked(input_ids: Any, **options: Any) -> Any:
        return generate(input_ids, attention_mask=(input_ids != tokenizer.pad_token_id).long(), **options)

    network.generate = masked


def labeled(
    mirror: Path, folder: Path, claims: Sequence[tuple[str, Any]], file: Path, *, patched: bool = True
) -> list[str]:
    """Return the labels of autoais.py, which writes to a file, for (claim, evidence) with the model
    in a folder.
    """
    import torch
    from transformers import AutoTokenizer, T5ForConditionalGeneration

    tokenizer = AutoTokenizer.from_pretrained(folder)
    network = T5ForConditionalGeneration.from_pretrained(folder).eval()
    if patched:
        pass_attention_mask(network, tokenizer)
    pretrained = lambda value: SimpleNamespace(from_pretrained=lambda *args, **kwargs: value)  # noqa: E731
    modules = {
        "nltk": module("nltk", sent_tokenize=punctuation_splitter),
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
