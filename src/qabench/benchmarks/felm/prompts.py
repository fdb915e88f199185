"""The prompts of FELM's evaluators: the authors' (see ``official_prompts``), qabench's, or a user's template.

Source of the protocol: Chen et al., FELM, NeurIPS 2023 (https://arxiv.org/abs/2310.00741), and ``eval/eval.py`` and
``eval/prompt`` of hkust-nlp/felm.
"""

from __future__ import annotations

import hashlib
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Protocol

from qabench.errors import InputError, SourceUnavailable
from qabench.loading_scripts import open_path
from qabench.tasks.prompt_source import PromptSource
from qabench.tasks.prompts import DATA_NOT_INSTRUCTIONS, Prompt, check_fields, read_prompt

DOMAINS = ("wk", "science", "math", "reasoning", "writing_rec")
CLAIM_DOMAINS = ("wk", "science", "writing_rec")  # the domains with prompts for claims and with references
OFFICIAL, QABENCH, AUTO = "official", "qabench", "auto"
KINDS = {"raw": "raw", "cot": "cot", "cot-cons": "cot", "link": "link", "content": "content"}
SYSTEM = "You are a helpful assistant."
REFERENCES = {"link": "links", "content": "texts"}
ERRORS = {
    "math": "an error of calculation or of reasoning",
    "reasoning": "an error of reasoning or of fact",
}
MATERIAL = """<question>
{question}
</question>

"""
CAUTION = f"{DATA_NOT_INSTRUCTIONS}\n\n"
EXTRACT = Prompt(
    QABENCH,
    system=SYSTEM,
    user=f"""An answer to a question was cut into numbered segments. List the factual claims that each segment makes.

{MATERIAL}<segments>
{{segments}}
</segments>

{CAUTION}A claim is one short sentence that is true or false and can be understood on its own: replace pronouns by what
they refer to. Report what the answer says, whether it is right or wrong. A segment without claims gets none. For each
segment write the following, and nothing else:

Segment 1:
Claim 1. ...
Claim 2. ...""",
)
_FIRST_LETTER = re.compile("[A-Za-z]")


def numbered(texts: Sequence[str]) -> str:
    """Return one line per text, numbered from 1; each is shown from its first ASCII letter on, if any."""
    starts = [(text, _FIRST_LETTER.search(text)) for text in texts]
    return "\n".join(f"{i}. {text[at.start() :] if at else ''}" for i, (text, at) in enumerate(starts, start=1))


@dataclass(frozen=True)
class FelmPrompts:
    """The prompts of one method.

    Attributes:
        name: "official", "qabench", or the user's file.
        verdicts: (domain, kind) -> the prompt for verdicts on segments; kinds are "raw", "cot", "link", "content".
        claim_verdicts: the same for verdicts on claims; empty without claims.
        extraction: domain -> the prompt for the claims; empty without claims.
    """

    name: str
    verdicts: Mapping[tuple[str, str], Prompt]
    claim_verdicts: Mapping[tuple[str, str], Prompt] = field(default_factory=dict)
    extraction: Mapping[str, Prompt] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """Return the name, and twelve hex digits of the digest of all prompts, for signatures."""
        parts = [
            f"{part} {key} {prompt.digest}"
            for part in ("verdicts", "claim_verdicts", "extraction")
            for key, prompt in sorted(getattr(self, part).items())
        ]
        return f"{self.name}-{hashlib.sha256(chr(10).join(parts).encode()).hexdigest()[:12]}"


def felm_prompts(
    method: str,
    claims: bool = False,
    prompt: str | Path = AUTO,
    *,
    shows_references: bool = True,
    for_vicuna: bool = False,
) -> FelmPrompts:
    """Return the prompts that a method needs.

    Args:
        method: raw, cot, cot-cons, link or content.
        claims: whether claims are judged, in the domains that have prompts for it.
        prompt: "official", the authors' prompts; "qabench", this project's; "auto", the authors' if their files are
            available, else this project's, with a warning; or a file (see ``read_prompt``) for all domains, with the
            fields {question}, {segments} (segments or claims, numbered) and, for link and content, {references}.
        shows_references: False leaves references out of link and content prompts, as the authors' script does.
        for_vicuna: whether the prompt is the authors' for Vicuna; see ``OfficialPrompts``.

    Raises:
        InputError: an unknown method, or a prompt that cannot be used.
        SourceUnavailable: "official", and the authors' prompts are not available.
    """
    if method not in KINDS:
        raise InputError(f"unknown method {method!r}; allowed: {', '.join(KINDS)}")
    if prompt in (AUTO, OFFICIAL):
        try:
            return _made(OfficialPrompts(shows_references, for_vicuna), method, claims)
        except SourceUnavailable as error:
            if prompt == OFFICIAL:
                raise SourceUnavailable(
                    f"a prompt of FELM's authors is not available: {error}\nprompt=qabench uses qabench's prompts, "
                    "whose scores are not official"
                ) from error
            warnings.warn(
                "the prompts of FELM's authors are not available (`qabench fetch felm`); using qabench's prompts, "
                "whose scores are not official",
                stacklevel=2,
            )
    if prompt in (AUTO, QABENCH):
        return _made(_OwnPrompts(shows_references), method, claims)
    path = Path(str(prompt))
    if not path.is_file():
        raise InputError(f"the prompt is {str(prompt)!r}; allowed: official, qabench, auto, or a file")
    fields = {"question", "segments"} | ({"references"} if KINDS[method] in REFERENCES else set())
    return _made(_UsersPrompt(path, fields), method, claims)


def kind_of(method: str, domain: str, has_references: bool) -> str:
    """Return the kind of prompt for a response: link and content become raw if there are no references to show."""
    kind = KINDS[method]
    return "raw" if kind in REFERENCES and not (domain in CLAIM_DOMAINS and has_references) else kind


class _Maker(Protocol):
    name: str

    def verdicts(self, domain: str, kind: str, unit: str) -> Prompt: ...

    def extraction(self, domain: str) -> Prompt: ...


def _made(make: _Maker, method: str, claims: bool) -> FelmPrompts:
    # Always for all domains, so that the label of a method is the same in all configs.
    by_claims = CLAIM_DOMAINS if claims else ()
    return FelmPrompts(
        make.name,
        {key: make.verdicts(*key, "segments") for key in _keys(method, DOMAINS)},
        {key: make.verdicts(*key, "claims") for key in _keys(method, by_claims)},
        {domain: make.extraction(domain) for domain in by_claims},
    )


def _keys(method: str, domains: Sequence[str]) -> list[tuple[str, str]]:
    kind = KINDS[method]
    if kind not in REFERENCES:
        return [(domain, kind) for domain in domains]
    with_references = [domain for domain in domains if domain in CLAIM_DOMAINS]
    return [(domain, "raw") for domain in domains] + [(domain, kind) for domain in with_references]


class _OwnPrompts:
    """Builds qabench's prompts."""

    name = QABENCH

    def __init__(self, shows_references: bool) -> None:
        self.shows_references = shows_references

    def verdicts(self, domain: str, kind: str, unit: str) -> Prompt:
        error = ERRORS.get(domain, "a factual error")
        shown = REFERENCES.get(kind) if self.shows_references else None
        how = f"was cut into numbered {unit}" if unit == "segments" else "was broken down into numbered claims"
        parts = [
            f"An answer to a question {how}. Find those that contain {error}.\n\n{MATERIAL}",
            f"<{unit}>\n{{segments}}\n</{unit}>\n\n",
        ]
        if shown:
            parts.append(f"<references>\n{{references}}\n</references>\n\nUse the references ({shown}). ")
        parts.append(CAUTION)
        answer = (
            f'"Answer: " and the numbers of the {unit} with an error, such as "Answer: 2, 5"; or "Answer: ALL_CORRECT" '
            "if none has one."
        )
        if kind == "cot":
            parts.append(
                f'Begin with "Thought: " and say in a few words what is wrong in which of the {unit}; do not comment '
                f"on those that are right. The last line is {answer}"
            )
        else:
            parts.append(f"Reply with one line and no more: {answer}")
        return Prompt(self.name, "".join(parts), SYSTEM)

    def extraction(self, domain: str) -> Prompt:
        return EXTRACT


class _UsersPrompt:
    """The prompt of a user's file, for everything except the extraction of claims."""

    def __init__(self, path: Path, fields: set[str]) -> None:
        prompt = check_fields(read_prompt(path), fields)
        self.prompt = Prompt(prompt.name, prompt.user, prompt.system or SYSTEM)
        self.name = prompt.name

    def verdicts(self, domain: str, kind: str, unit: str) -> Prompt:
        return self.prompt

    def extraction(self, domain: str) -> Prompt:
        return EXTRACT


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
        """Return the prompt for verdicts on "segments" or "claims", of one kind: "raw", "cot", "link" or "content"."""
        files = SEGMENT_FILES if unit == "segments" else CLAIM_FILES
        tail = self._references(kind) if self.shows_references and kind in ("link", "content") else ""
        return self._filled(files[_as_wk(domain)][kind], unit, tail)

    def extraction(self, domain: str) -> Prompt:
        """Return the prompt for the claims of a response."""
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
        """Return the script's strings before the question, the segments, the links and the documents."""
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
