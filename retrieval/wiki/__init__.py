"""Wikipedia for FanOutQA: MediaWiki as of the dataset's date, Kiwix, ZIM files, and a cache of pages."""
