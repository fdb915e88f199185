"""Calls to language models by judges and evaluators: endpoint, client, cache of replies, and cost.

``caller.caller_for`` names a model at an ``endpoint.Endpoint``. Its client (``routing.client_for``)
sends many ``exchange.ChatRequest`` objects at once, and stores every reply in ``cache.ReplyCache``.
"""
