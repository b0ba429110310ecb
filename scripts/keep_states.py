"""Keep the states of this version: ``python scripts/keep_states.py`` before a release, then commit tests/golden."""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from golden.stories import STORIES, lived, next_served  # noqa: E402
from gradeq import __version__  # noqa: E402


def main() -> None:
    """Write one file for each kind of layer."""
    folder = ROOT / "tests" / "golden" / __version__
    folder.mkdir(exist_ok=True)
    for name in STORIES:
        state = lived(name).to_json()
        kept = {"state": state, "next": next_served(name, lived(name))}
        (folder / f"{name}.json").write_text(json.dumps(kept, indent=1) + "\n")
        print(f"kept {name}")


if __name__ == "__main__":
    main()
