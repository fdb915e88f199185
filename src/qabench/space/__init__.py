"""The Gradio page of a metric on a Space."""
