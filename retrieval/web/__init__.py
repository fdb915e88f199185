"""Evidence from the web: a JSON search API, pages fetched politely, and their text.

``provider`` describes an API, ``fetch`` downloads pages, ``extract`` reads their text, and
``web.Web`` searches and joins them with a cache on disk.
"""
