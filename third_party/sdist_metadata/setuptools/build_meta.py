"""Answers pip's question for an archive's metadata from its PKG-INFO.

pip asks a source archive's build backend even when it only downloads, which for setuptools runs the
archive's setup.py. With this folder's parent on PYTHONPATH nothing of the archive is run.
"""

from email.parser import Parser
from pathlib import Path


def prepare_metadata_for_build_wheel(metadata_directory: str, config_settings=None) -> str:
    """Write the .dist-info of the archive in the current directory; PEP 517's hook."""
    text = Path("PKG-INFO").read_text(encoding="utf-8")
    fields = Parser().parsestr(text, headersonly=True)
    name = f"{fields['Name'].replace('-', '_')}-{fields['Version']}.dist-info"
    folder = Path(metadata_directory) / name
    folder.mkdir()
    (folder / "METADATA").write_text(text, encoding="utf-8")
    return name


def build_wheel(wheel_directory: str, config_settings=None, metadata_directory=None) -> str:
    """PEP 517 demands it; nothing is built from the archive in this way."""
    raise NotImplementedError("only metadata can be had here")
