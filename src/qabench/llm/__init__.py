"""Calls to language models: one client for judges and evaluators, its cache, its budget, and the prompts.

``client.ChatClient`` sends many ``exchange.ChatRequest`` at once to an ``endpoint.Endpoint`` and keeps every reply in
``cache.ReplyCache``; ``running.run_sync`` starts it from synchronous code. ``fanout_judge`` and ``fanout_judging`` are
FanOutQA's judge on top of it.
"""
