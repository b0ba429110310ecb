"""The numbers of an HTML page: those of its text, and the data that its charts are drawn from."""

import json
import re
from html.parser import HTMLParser

from golden.trees import numbers, plain

HIDDEN = {"style", "script", "svg"}  # how things look, and programs


class Text(HTMLParser):
    """Text nodes one after the other, and data in JSON."""

    def __init__(self):
        super().__init__()
        self.parts, self.data, self.within, self.reading = [], [], [], False

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.reading = tag == "script" and given.get("type") == "application/json"
        if tag in HIDDEN:
            self.within.append(tag)

    def handle_endtag(self, tag):
        if self.within and self.within[-1] == tag:
            self.within.pop()
        self.reading = False

    def handle_data(self, text):
        if self.reading:
            self.data.append(json.loads(text))
        elif not self.within or self.within == ["svg"]:
            self.parts.append(text)


def page(text):
    """What a page says in numbers; the version and dates of today apart."""
    reader = Text()
    reader.feed(text)
    said = re.sub(r"(gradeq|Python|numpy) \d+\.\d+\.\d+\S*", "", " ".join(reader.parts))
    said = re.sub(r"\d+ \w+ 20\d\d, \d+:\d+ UTC", "", said)
    return {"text": numbers(said), "charts": plain(reader.data)}
