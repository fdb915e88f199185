"""The prompts of FELM's authors, read at run time from ``eval/prompt`` and from the strings of ``eval/eval.py``.

The files are verified by digest, parsed or read as text, and never executed.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from qabench.errors import InputError
from qabench.loading_scripts import open_path
from qabench.prompts.source import PromptSource
from qabench.prompts.template import Prompt, check_fields

SCRIPT = "eval/eval.py"
# Below eval/prompt; writing_rec has the files of wk.
SEGMENT_FILES: Mapping[str, Mapping[str, str]] = {
    "math": {"raw": "segment/math/raw.txt", "cot": "segment/math/cot.txt"},
    "reasoning": {"raw": "segment/reasoning/raw.txt", "cot": "segment/reasoning/cot.txt"},
    "science": {
        "raw": "segment/sci/prompt_sci_raw.txt",
        "cot": "segment/sci/prompt_sci_cot.txt",
        "link": "segment/sci/prompt_sci_ret_link.txt",
        "content": "segment/sci/prompt_sci_ret_content.txt",
    },
    "wk": {
        "raw": "segment/wk/prompt_wk_raw.txt",
        "cot": "segment/wk/prompt_wk_cot.txt",
        "link": "segment/wk/prompt_wk_ret_link.txt",
        "content": "segment/wk/prompt_wk_ret_content.txt",
    },
}
CLAIM_FILES: Mapping[str, Mapping[str, str]] = {
    "science": {
        "raw": "claim/sci/claim_science.txt",
        "cot": "claim/sci/claim_science_cot.txt",
        "link": "claim/sci/claim_sci_link.txt",
        "content": "claim/sci/claim_sci_content.txt",
        "extract": "claim/sci/claim_extract_sci.txt",
    },
    "wk": {
        "raw": "claim/wk/claim_wk.txt",
        "cot": "claim/wk/claim_wk_cot.txt",
        "link": "claim/wk/claim_wk_link.txt",
        "content": "claim/wk/claim_wk_content.txt",
        "extract": "claim/wk/claim_extract_wk.txt",
    },
}


class OfficialPrompts:
    """Builds the authors' prompts: the text of a file, then question and segments in the format of their script.

    Args:
        shows_references: whether link and content prompts show references. The authors' script has the strings for it,
            but compares the method with wrong names, and so never shows any.
        for_vicuna: whether the prompt is for Vicuna: plain text with two more lines at the end, no system message.

    Raises:
        InputError: a file does not have the expected form.
        SourceError: a file is not available.
    """

    name = "official"

    def __init__(self, shows_references: bool, for_vicuna: bool) -> None:
        self.shows_references = shows_references
        self.for_vicuna = for_vicuna

    def verdicts(self, domain: str, kind: str, unit: str) -> Prompt:
        """The prompt for verdicts on "segments" or "claims", of one kind: "raw", "cot", "link" or "content"."""
        files = SEGMENT_FILES if unit == "segments" else CLAIM_FILES
        tail = self._references(kind) if self.shows_references and kind in ("link", "content") else ""
        return self._filled(files[_as_wk(domain)][kind], unit, tail)

    def extraction(self, domain: str) -> Prompt:
        """The prompt for the claims of a response."""
        return self._filled(CLAIM_FILES[_as_wk(domain)]["extract"], "segments", "")

    def _filled(self, path: str, unit: str, tail: str) -> Prompt:
        text = open_path("felm", f"eval/prompt/{path}").read_text(encoding="utf-8")
        question, segments = self._strings[:2]
        if unit == "claims":  # the script asks only about segments
            segments = segments.replace("Segments", "Claims")
        end = "".join(self._source.appended("eval_prompt", "gene")) if self.for_vicuna else ""
        user = f"{text}\n{question}{{question}}{segments}{{segments}}\n{tail}{end}"
        prompt = Prompt(self.name, user, None if self.for_vicuna else self._system)
        return check_fields(prompt, {"question", "segments"} | ({"references"} if tail else set()))

    def _references(self, kind: str) -> str:
        _, _, links, documents = self._strings
        return f"{links if kind == 'link' else documents}{{references}}\n"

    @cached_property
    def _source(self) -> PromptSource:
        return PromptSource(open_path("felm", SCRIPT))

    @cached_property
    def _strings(self) -> list[str]:
        """The script's strings before the question, the segments, the links and the documents."""
        names = {"prompt": "question", "b": "segments"}
        parts = self._source.appended("eval_prompt", "run", fields=names)
        if len(parts) != 6 or parts[1:4:2] != ["{question}", "{segments}"]:
            raise InputError(f"{SCRIPT} of FELM's authors does not build its prompt as expected")
        return [parts[0], parts[2], *parts[4:]]

    @cached_property
    def _system(self) -> str:
        return self._source.constants("prefix", "gene")[-1]


def _as_wk(domain: str) -> str:
    return "wk" if domain == "writing_rec" else domain
