"""Sphinx: `make docs` builds docs/ into build/docs, and every warning is an error."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS / "tools"))

import tables  # noqa: E402

project = "Triton with native reverse scans"
copyright = "the authors, MIT licence"
release = tables.version()
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_copybutton"]
exclude_patterns = ["tools", "requirements.txt"]
html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["wide.css"]
html_title = f"{project} {release}"
html_show_sourcelink = False
highlight_language = "none"
default_role = "code"  # docstrings write `name` for code
myst_heading_anchors = 3
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
copybutton_prompt_text = "$ "

PLOTS = ("scan.png", "memory.png", "growth.png")


def _draw(app: Sphinx) -> None:
    """Write docs/generated/: the drawings, and the plots of the newest benchmark results.

    In a process of its own, whose file descriptor for errors it redirects.
    """
    folder = DOCS / "generated"
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as made:
        command = [sys.executable, str(DOCS / "tools" / "walks.py"), made]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise ExtensionError(f"{' '.join(command)} failed:\n{done.stderr}")
        pictures = {path.name: path.read_bytes() for path in Path(made).glob("*.svg")}
    for name in PLOTS:
        pictures[f"bench-{name}"] = (tables.newest_results() / name).read_bytes()
    for name, data in pictures.items():
        path = folder / name
        if not path.is_file() or path.read_bytes() != data:
            path.write_bytes(data)


def _expand(app: Sphinx, name: str, source: list[str]) -> None:
    """Expand the generators of tables.py, and give Output blocks their title."""
    text = tables.expand(source[0])
    source[0] = re.sub(
        r'^```text title="Output"$', "```{code-block} text\n:caption: Output\n", text, flags=re.M
    )


def _end_fields(
    app: Sphinx, what: str, name: str, obj: object, options: object, lines: list
) -> None:
    """Put the empty line after the fields of a docstring that upstream's tl.cumsum lacks."""
    for i in range(len(lines) - 1, 0, -1):
        if lines[i - 1].startswith((":param", ":type")) and lines[i][:1] not in ("", ":", " "):
            lines.insert(i, "")


def _usage(
    app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    """Show the command lines of a module's docstring, which are indented, as they are."""
    if what == "module":
        for i in range(len(lines) - 1, 1, -1):
            if lines[i].startswith("    ") and not lines[i - 1]:
                lines[i:i] = ["::", ""]


def _signature(
    app: Sphinx, what: str, name: str, obj: object, options: object, arguments: str, returns: str
) -> tuple[str, str | None] | None:
    """The parameters of a function of triton.language, without those that the compiler passes."""
    if not name.startswith("triton.language."):
        return None
    parameters = inspect.signature(getattr(obj, "fn", obj)).parameters.values()
    shown = [p.replace(annotation=p.empty) for p in parameters if not p.name.startswith("_")]
    return str(inspect.Signature(shown)), returns


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("autodoc-process-signature", _signature)
    app.connect("autodoc-process-docstring", _end_fields)
    app.connect("autodoc-process-docstring", _usage)
    app.connect("builder-inited", _draw)
    app.connect("source-read", _expand)
