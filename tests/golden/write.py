"""Write the kept states of this version: python -m golden.write, from the folder of the tests."""

import json
from pathlib import Path

from golden.stories import STORIES, lived, next_served
from gradeq import __version__

if __name__ == "__main__":
    folder = Path(__file__).parent / __version__
    folder.mkdir(exist_ok=True)
    for name in STORIES:
        layer = lived(name)
        kept = {"state": layer.to_json(), "next": next_served(name, layer)}
        (folder / f"{name}.json").write_text(json.dumps(kept) + "\n")
