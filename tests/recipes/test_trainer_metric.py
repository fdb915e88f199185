"""The recipe of a metric in a Trainer, on a tiny random model."""

import json
from pathlib import Path

import pytest
from script_modules import importing_from

FOLDER = Path(__file__).parents[2] / "recipes" / "trainer_metric"


def test_a_trainer_keeps_the_checkpoint_with_the_best_rouge(tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="needs recipes/trainer_metric/requirements.txt")
    pytest.importorskip("accelerate", reason="needs recipes/trainer_metric/requirements.txt")
    import tiny_language_models as tiny
    from safetensors.torch import load_file

    import qabench

    model = tiny.save_tiny_flan(tmp_path / "model")
    file = tmp_path / "questions.jsonl"
    rows = [{"question": f"Why {i}?", "answer": "a " * 8 + f"e {i}"} for i in range(8)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    options = {
        "model": model, "train_file": file, "validation_file": file, "output_dir": tmp_path / "out", "max_length": 20,
        "num_train_epochs": 3, "learning_rate": 0.05, "per_device_train_batch_size": 4, "report_to": "none",
        "generation_max_length": 12, "use_cpu": True, "disable_tqdm": True, "seed": 1,
    }  # fmt: skip
    with importing_from(FOLDER, ("train",)):
        import train  # type: ignore[import-not-found]

        trainer = train.main([part for name, value in options.items() for part in (f"--{name}", str(value))])
    scores = [entry["eval_rouge1"] for entry in trainer.state.log_history if "eval_rouge1" in entry]
    assert len(scores) == 3 and trainer.state.best_metric == max(scores) > 0
    kept = load_file(Path(trainer.state.best_model_checkpoint) / "model.safetensors")
    own = dict(trainer.model.named_parameters())
    assert all((own[name].detach() == value).all() for name, value in kept.items() if name in own)
    # the scores are those of the metric on the decoded answers and the whole references
    output = trainer.predict(trainer.eval_dataset)
    tokens = [[token for token in row if token >= 0] for row in output.predictions]
    answers = trainer.processing_class.batch_decode(tokens, skip_special_tokens=True)
    references = [row["answer"] for row in rows]
    expected = qabench.load_metric("expertqa_lfqa").compute(predictions=answers, references=references, flat=True)
    assert output.metrics["test_rouge1"] == expected["rouge1"] == trainer.state.best_metric
