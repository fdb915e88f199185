"""The name by which people know a model, from Inspect's name of it."""

from __future__ import annotations

# Inspect's providers that serve models of other companies. The model's name follows the provider's.
# Providers that are not listed, as in openai/gpt-4o, made the model.
SERVERS = (
    *("azureai", "bedrock", "cloudflare", "fireworks", "groq", "hf", "hf-inference-providers"),
    *("litellm-proxy", "llama-cpp-python", "nnterp", "ollama", "openrouter", "sagemaker"),
    *("sambanova", "sglang", "together", "transformer_lens", "vllm", "vllm-completions"),
)
# Providers that are followed by the name of a service: openai-api/SERVICE/NAME.
WITH_SERVICE = ("openai-api", "openai-api-completions")


def model_name(model: str, model_path: object = None) -> str:
    """Return the served name of a model, its name on the Hub, or the name of its folder.

    Args:
        model: Inspect's name.
        model_path: the folder of a local model (``-M model_path=DIR``).

    Examples:
        >>> model_name("openai-api/qabench/small"), model_name("hf/ORG/NAME")
        ('small', 'ORG/NAME')
        >>> model_name("openai/gpt-4o"), model_name("hf/local", "/models/small/")
        ('openai/gpt-4o', 'small')
    """
    if isinstance(model_path, str) and model_path:
        return _folder_name(model_path)
    provider, _, name = model.partition("/")
    if provider in WITH_SERVICE:
        name = name.partition("/")[2]
    elif provider not in SERVERS:
        return model
    if name.startswith(("/", "~", ".")):
        return _folder_name(name)
    return name or model


def _folder_name(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2] or path
