"""The code blocks of a page: `python docs/tools/blocks.py PAGE...` rewrites what they print.

The Python blocks of a page are one program, in their order.  A block of text titled "Output" holds
what the program prints between it and the Output block before it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

BLOCK = re.compile(r'^```(python|text title="Output")\n(.*?)^```$', re.MULTILINE | re.DOTALL)
MARK = "\x1e"


class PageError(Exception):
    """The program of a page failed; the text has its last lines."""


def program(page: str) -> str:
    """The page's Python, with a mark printed where an Output block is."""
    parts = []
    for kind, text in BLOCK.findall(page):
        parts.append(text if kind == "python" else f"print({MARK!r}, end='')\n")
    return "\n".join(parts)


def outputs(page: str) -> list[str]:
    """The Output blocks as they are written."""
    return [text for kind, text in BLOCK.findall(page) if kind != "python"]


def run(code: str) -> list[str]:
    """Run a page's program in a process of its own; returns what it printed before each mark.

    Raises PageError if it fails, or prints something after its last Output block.
    """
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "page.py")  # triton reads a kernel's source from its file
        script.write_text(code)
        environment = {"TRITON_DEFAULT_FP_FUSION": "1"} | os.environ
        done = subprocess.run(
            [sys.executable, str(script)], capture_output=True, text=True, env=environment
        )
    if done.returncode:
        raise PageError("\n".join(done.stderr.strip().splitlines()[-15:]))
    *printed, rest = done.stdout.split(MARK)
    if rest.strip():
        raise PageError(f"printed without an Output block: {rest!r}")
    return printed


def rewrite(path: Path) -> None:
    """Put what the program prints into the page's Output blocks."""
    page = path.read_text()
    printed = iter(run(program(page)))

    def block(match: re.Match) -> str:
        if match.group(1) == "python":
            return match.group()
        return f'```text title="Output"\n{next(printed)}```'

    path.write_text(BLOCK.sub(block, page))


if __name__ == "__main__":
    for name in sys.argv[1:]:
        rewrite(Path(name))
