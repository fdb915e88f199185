"""Wikipedia at the epoch of a dataset: MediaWiki, Kiwix, and a cache of pages."""
