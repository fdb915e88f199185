"""How a question becomes the tokens that a model reads, in training and in generation alike.

The tokens of the prompt and the tokens of the answer are computed apart and joined, so that a model
is trained on exactly the prompt tokens from which it later generates.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from settings import CHAT, SEQ2SEQ, Recipe

from qabench.benchmarks.expertqa.prompts import fine_tuning_prompt
from qabench.errors import InputError
from qabench.prompts.prompt import Prompt, check_fields, read_prompt

QUESTION = Prompt("question", "{question}")


@dataclass(frozen=True)
class Prompting:
    """A prompt, and the tokenizer of the model that reads it.

    Attributes:
        prompt: its field is question.
        with_template: whether the prompt's messages are put into the model's chat template.
    """

    recipe: Recipe
    tokenizer: Any
    prompt: Prompt
    with_template: bool

    @property
    def label(self) -> str:
        """Return the prompt's name and a digest of all that the model reads besides the question."""
        if not self.with_template:
            return self.prompt.label
        inputs = f"{self.prompt.digest}\0{self.tokenizer.chat_template}\0{self.recipe.chat_template_kwargs}"
        return f"template-{self.prompt.name}-{sha256(inputs.encode()).hexdigest()[:12]}"

    def prompt_ids(self, question: str) -> list[int]:
        """Return the tokens from which the model generates."""
        if self.recipe.kind == SEQ2SEQ:
            # The authors' script strips the question, too.
            text = self.prompt.filled(question=question.lstrip())
            ids: list[int] = self.tokenizer(
                text, truncation=True, max_length=self.recipe.max_source_length
            ).input_ids
            return ids
        prompt, _ = self._texts(question, "")
        return self._plain_ids(prompt)

    def answer_ids(self, question: str, answer: str) -> list[int]:
        """Return the tokens that the model is to generate, with the token that ends an answer."""
        if self.recipe.kind == SEQ2SEQ:
            limit = self.recipe.max_target_length
            ids: list[int] = self.tokenizer(
                text_target=answer, truncation=True, max_length=limit
            ).input_ids
            return ids
        _, text = self._texts(question, answer)
        return self._plain_ids(text)

    def stop_ids(self) -> list[int]:
        """Return the tokens that end an answer: the tokenizer's end token, and the chat template's."""
        ends = [self.tokenizer.eos_token_id]
        if self.with_template:
            after = self._plain_ids(self._texts("?", "!")[1].rpartition("!")[2].strip())
            ends += [id for id in after[:1] if id in self.tokenizer.added_tokens_decoder]
        return sorted({id for id in ends if id is not None})

    def _texts(self, question: str, answer: str) -> tuple[str, str]:
        """Return the text of the prompt and of the answer with its end."""
        if not self.with_template:
            # The newline and the end token follow the authors' script.
            return self.prompt.filled(question=question), f"\n{answer}{self.tokenizer.eos_token}"
        messages = [
            {"role": role, "content": text}
            for role, text in self.prompt.messages(question=question)
        ]
        prompt = self._rendered(messages, add_generation_prompt=True)
        whole = self._rendered([*messages, {"role": "assistant", "content": answer}])
        if whole.startswith(prompt):
            return prompt, whole[len(prompt) :]
        # The template writes past turns in another way.
        return prompt, answer + self.tokenizer.eos_token

    def _rendered(self, messages: list[dict[str, str]], **options: Any) -> str:
        options |= self.recipe.template_arguments
        text: str = self.tokenizer.apply_chat_template(messages, tokenize=False, **options)
        return text

    def _plain_ids(self, text: str) -> list[int]:
        # The text has its special tokens.
        ids: list[int] = self.tokenizer(text, add_special_tokens=False).input_ids
        return ids


def prompting_of(recipe: Recipe, tokenizer: Any, stored: Prompt | None = None) -> Prompting:
    """Return the prompt that ``recipe.prompt`` names, for a model's tokenizer.

    Args:
        stored: the prompt of a record, which replaces the file that ``recipe.prompt`` names.

    Raises:
        InputError: the prompt does not fit the kind of model or its tokenizer, or a file cannot be
            read.
        SourceError: the authors' file is not available.
    """
    name = recipe.prompt
    if name == "official":
        return Prompting(recipe, tokenizer, _official(recipe, tokenizer), with_template=False)
    prompt = QUESTION if name in ("question", "template") else stored or read_prompt(Path(name))
    check_fields(prompt, {"question"})
    if name == ("template" if recipe.kind == SEQ2SEQ else "question"):
        raise InputError(
            f"prompt {name!r} does not fit kind {recipe.kind!r}: {_allowed(recipe.kind)}"
        )
    if recipe.kind == SEQ2SEQ and prompt.system:
        raise InputError(
            f"the prompt {name} has a system message, which a seq2seq model does not read"
        )
    if recipe.kind == CHAT and not tokenizer.chat_template:
        raise InputError(
            "the model's tokenizer has no chat template; give --prompt official (Llama 2, Vicuna), or use the chat "
            "version of the model"
        )
    return Prompting(recipe, tokenizer, prompt, with_template=recipe.kind == CHAT)


def _official(recipe: Recipe, tokenizer: Any) -> Prompt:
    if recipe.kind == SEQ2SEQ:
        raise InputError(f"prompt 'official' does not fit kind 'seq2seq': {_allowed(SEQ2SEQ)}")
    if tokenizer.convert_tokens_to_ids("<s>") in (None, tokenizer.unk_token_id):
        raise InputError(
            "prompt 'official' is Llama 2's format, and the model's tokenizer does not have its token <s>; "
            "use --prompt template"
        )
    return fine_tuning_prompt()


def _allowed(kind: str) -> str:
    if kind == SEQ2SEQ:
        return "the authors give FLAN-T5 the question alone; allowed: question, or a file"
    return "allowed: template, official, or a file"
