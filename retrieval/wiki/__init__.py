"""Wikipedia for FanOutQA: MediaWiki as of the dataset's date, Kiwix, and a cache of pages."""
