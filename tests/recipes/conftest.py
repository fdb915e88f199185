"""The recipe's modules, tiny models, and questions that a tiny model can learn."""

import importlib
import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from script_modules import importing_from

FOLDER = Path(__file__).parents[2] / "recipes" / "expertqa_lfqa"
MODULES = ("settings", "data", "prompting", "card", "train", "generate")


@pytest.fixture(scope="session")
def recipe() -> Iterator[SimpleNamespace]:
    """The modules of the recipe, imported as when its folder is the script's."""
    pytest.importorskip("trl", reason="needs recipes/expertqa_lfqa/requirements.txt")
    pytest.importorskip("peft", reason="needs recipes/expertqa_lfqa/requirements.txt")
    with importing_from(FOLDER, MODULES):
        yield SimpleNamespace(folder=FOLDER, **{name: importlib.import_module(name) for name in MODULES})


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> Iterator[None]:
    """Small networks run fastest in one thread; and with another number of threads, sums differ in
    their last digit.
    """
    torch = pytest.importorskip("torch", reason="needs recipes/expertqa_lfqa/requirements.txt")

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def models(recipe: SimpleNamespace, tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """Folders of the tiny models."""
    import tiny_language_models as tiny

    made = tmp_path_factory.mktemp("models")
    return SimpleNamespace(
        qwen=tiny.save_tiny_qwen(made / "qwen"),
        llama=tiny.save_tiny_llama(made / "llama"),
        flan=tiny.save_tiny_flan(made / "flan"),
    )


@pytest.fixture(scope="session")
def questions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """24 short questions in the authors' format, whose answers have words in common."""
    path = tmp_path_factory.mktemp("questions") / "lfqa.json"
    rows = [
        {"example_id": i, "context": "", "question": f" Why is {i}?", "answer": f"It is a number, {i}."}
        for i in range(24)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path
