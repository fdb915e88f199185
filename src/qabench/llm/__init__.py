"""Calls to language models by judges and evaluators: endpoint, client, cache of replies, and cost.

``client.caller_for`` names a model at an ``endpoint.Endpoint``. Its client sends many
``exchange.ChatRequest`` at once and stores every reply in ``cache.ReplyCache``.
"""
