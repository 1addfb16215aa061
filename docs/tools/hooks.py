"""What mkdocs calls: generated tables and drawings, and pages that others may not have written."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

TOOLS = Path(__file__).resolve().parent
sys.path.insert(0, str(TOOLS))

import tables

OPTIONAL = ("clients.md", "source-base.md")
PLOTS = ("scan.png", "memory.png", "growth.png")


def _without_missing(nav: list, folder: Path) -> list:
    kept = []
    for entry in nav:
        ((title, value),) = entry.items()
        if isinstance(value, list):
            kept.append({title: _without_missing(value, folder)})
        elif value not in OPTIONAL or (folder / value).is_file():
            kept.append(entry)
    return kept


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Leave pages of OPTIONAL out of the menu while they do not exist."""
    config.nav = _without_missing(config.nav, Path(config.docs_dir))
    return config


def _drawings() -> dict[str, bytes]:
    """Compile and draw, in a process of its own: libtriton reports leaks of its own at the end."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, str(TOOLS / "walks.py"), folder]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise PluginError(f"{' '.join(command)} failed:\n{done.stderr}")
        return {path.name: path.read_bytes() for path in Path(folder).glob("*.svg")}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the drawings, and the plots of the newest benchmark results."""
    pictures = _drawings()
    for name in PLOTS:
        pictures[f"bench-{name}"] = (tables.newest_results() / name).read_bytes()
    for name, data in pictures.items():
        files.append(File.generated(config, f"generated/{name}", content=data))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Expand the generators of tables.py."""
    return tables.expand(markdown)
