"""The example notebooks run from top to bottom, show what they talk about, and are stored without outputs."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

import gradeq

nbformat = pytest.importorskip("nbformat", reason="pip install nbformat nbclient ipykernel")
nbclient = pytest.importorskip("nbclient", reason="pip install nbformat nbclient ipykernel")
pytest.importorskip("ipykernel", reason="pip install nbformat nbclient ipykernel")

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


def test_there_are_two() -> None:
    assert len(NOTEBOOKS) == 2


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_stored_without_outputs(path: Path) -> None:
    stored = json.loads(path.read_text(encoding="utf-8"))
    for cell in stored["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [] and cell["execution_count"] is None
    assert path.stat().st_size < 20_000
    nbformat.validate(stored)


@pytest.mark.filterwarnings("ignore")  # of the client's own event loop; cells raise theirs
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_tables_and_pictures(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    monkeypatch.setenv("PYTHONWARNINGS", "error::UserWarning")
    monkeypatch.setenv("PYTHONPATH", str(Path(gradeq.__file__).parents[1]), prepend=os.pathsep)
    notebook: Any = nbformat.read(path, as_version=4)
    here = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=120, resources=here, kernel_name="python3").execute()
    shown = [
        output.data
        for cell in notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
        if output.output_type == "execute_result"
    ]
    assert any("<table>" in data.get("text/html", "") for data in shown)
    assert any("image/png" in data for data in shown)
