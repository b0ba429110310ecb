"""``python -m benchmarks.peers.install``: the peers and gradeq in ``.peers``, an environment of their own.

All at once if they agree with each other, else one after the other; a line for each that cannot be had.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HOME = ROOT / ".peers"
PYTHON = HOME / "bin" / "python"
STAMP = HOME / ".gradeq-peers"
WANTED = ROOT / "benchmarks" / "peers.txt"


def wanted(text: str) -> list[str]:
    """The requirements, without remarks."""
    lines = (line.split("#")[0].strip() for line in text.splitlines())
    return [line for line in lines if line]


def pip(*arguments: str) -> bool:
    """Whether pip could."""
    command = [str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    return subprocess.run([*command, *arguments], cwd=ROOT, capture_output=True).returncode == 0


def environment() -> None:
    """Made with venv, or with virtualenv where Python comes without it."""
    if PYTHON.exists():
        return
    if subprocess.run([sys.executable, "-m", "venv", str(HOME)], capture_output=True).returncode:
        where = ROOT / ".bootstrap"
        subprocess.run(
            [sys.executable, "-m", "pip", "install", "--quiet", "--target", where, "virtualenv"], check=True
        )
        code = f"import sys; sys.path.insert(0, {str(where)!r}); import virtualenv; virtualenv.cli_run(sys.argv[1:])"
        subprocess.run([sys.executable, "-c", code, str(HOME)], check=True)


def main() -> None:
    packages = wanted(WANTED.read_text(encoding="utf-8"))
    key = hashlib.sha256(f"{ROOT} {sys.version_info[:2]} {packages}".encode()).hexdigest()
    if STAMP.exists() and STAMP.read_text() == key:
        return
    print(f"peers: installing {len(packages)} packages in .peers, which takes minutes", flush=True)
    environment()
    if not pip("-e", ".[demo]", *packages):
        print("peers: they cannot all be had together; one after the other", flush=True)
        if not pip("-e", ".[demo]"):
            raise SystemExit("peers: gradeq itself could not be installed in .peers")
        for package in packages:
            if not pip("-e", ".[demo]", package):
                print(f"peers: {package} cannot be had here; it is left out", flush=True)
    STAMP.write_text(key)


if __name__ == "__main__":
    main()
