"""Evidence from the web: a JSON search API, pages fetched politely, and their text.

``search`` asks an API that a few lines of configuration describe, ``fetch`` downloads pages, ``extract`` reads their
text, and ``web.Web`` joins the three with a cache on disk.
"""
