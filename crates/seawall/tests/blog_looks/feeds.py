"""feeds.py URL...: reads feeds with feedparser, as readers of feeds do. What is wrong is written to standard output, a line each."""

import sys

import feedparser

wrong = []
for url in sys.argv[1:]:
    feed = feedparser.parse(url)
    say = lambda what: wrong.append(f"{url}: {what}")
    if feed.bozo:
        say(f"not well-formed: {feed.bozo_exception}")
    if not feed.version:
        say("no known format")
    for name in ("title", "link", "language"):
        if not feed.feed.get(name):
            say(f"the feed has no {name}")
    if not any(link.rel == "self" and link.href.startswith("http") for link in feed.feed.get("links", [])):
        say("the feed does not say where it is")
    if not feed.entries:
        say("no entries")
    ids = [entry.get("id") for entry in feed.entries]
    if len(set(ids)) != len(ids):
        say("two entries with one id")
    for entry in feed.entries:
        for name in ("id", "title", "link", "author", "published_parsed", "updated_parsed", "content"):
            if not entry.get(name):
                say(f"{entry.get('title')}: no {name}")
        content = entry.get("content", [{}])[0].get("value", "")
        for mark in (' href="', ' src="'):
            for rest in content.split(mark)[1:]:
                if not rest.startswith(("http://", "https://", "mailto:", "data:")):
                    say(f"{entry.get('title')}: {mark}{rest[:60]} is not absolute")
    # Asked again with its validator, a feed that has not changed has no content (RFC 9110 §13.1.2).
    again = feedparser.parse(url, etag=feed.get("etag"))
    if not feed.get("etag") or again.get("status") != 304:
        say(f"asked again: {again.get('status')}, not 304")
print("\n".join(wrong))
