"""The page that shows a metric on a Space. (``evaluate``'s own widget does not run on current gradio.)"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from qabench.errors import InputError, MissingExtra
from qabench.loading import load_metric


def page(metric: str) -> Any:
    """A gradio page: predictions and references in (at first those of ``example.json``), scores out, the card below.

    Raises:
        MissingExtra: gradio is not installed.
    """
    try:
        import gradio
    except ImportError:
        raise MissingExtra("the page of a metric needs gradio: pip install gradio") from None
    folder = Path(__file__).parent / metric
    card = (folder / "README.md").read_text(encoding="utf-8").split("\n---\n", 1)[1]
    example = json.loads((folder / "example.json").read_text(encoding="utf-8"))
    shown = {name: json.dumps(rows, ensure_ascii=False) for name, rows in example.items()}
    with gradio.Blocks(title=metric) as blocks:
        predictions = gradio.Textbox(shown["predictions"], label="Predictions: a JSON list", lines=4)
        references = gradio.Textbox(shown["references"], label="References: a JSON list", lines=4)
        button = gradio.Button("Score", variant="primary")
        button.click(lambda *texts: score(metric, *texts), [predictions, references], gradio.JSON(label="Scores"))
        gradio.Markdown(card)
    return blocks


def score(metric: str, predictions: str, references: str) -> Any:
    """What the page shows: the result for two JSON lists, or {"error": what to mend}."""
    try:
        given = {"predictions": json.loads(predictions), "references": json.loads(references)}
        return load_metric(metric).compute(**given, references_format="python")
    except json.JSONDecodeError as error:
        return {"error": f"not JSON: {error}"}
    except InputError as error:
        return {"error": str(error)}
