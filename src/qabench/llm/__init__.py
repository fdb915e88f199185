"""Calls to language models by judges and evaluators: client, cache of replies, and budget.

``client.ChatClient`` sends many ``exchange.ChatRequest`` at once to an ``endpoint.Endpoint`` and keeps every reply in
``cache.ReplyCache``; ``running.run_sync`` calls it from synchronous code.
"""
