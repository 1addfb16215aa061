"""Makes `pip wheel .` and `python -m build` produce the patched triton wheel
(python/build_helpers/wheel.py), or with TRITON_BASE=source the one that is compiled from source
(python/build_helpers/source_wheel.py).

Nothing is compiled by setuptools itself: the commands below hand over to the build helpers.
"""

import os
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.editable_wheel import editable_wheel
from setuptools.errors import SetupError

sys.path.insert(0, str(Path(__file__).resolve().parent / "third_party"))
sys.path.insert(0, str(Path(__file__).resolve().parent / "python"))

from build_helpers import content, overlay, source_wheel, steps, wheel

BASES = {"wheel": wheel, "source": source_wheel}


class BuildPatchedWheel(bdist_wheel):
    """Writes the upstream wheel with our changes into the directory that the front end asks for."""

    def run(self):
        base = os.environ.get("TRITON_BASE", "wheel")
        if base not in BASES:
            raise SetupError(f"TRITON_BASE must be {' or '.join(BASES)}, but is {base!r}")
        try:
            path = BASES[base].build(Path(self.dist_dir))
        except steps.FAILURES as error:
            raise SetupError(steps.explain(error)) from None
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        self.distribution.dist_files.append(("bdist_wheel", version, str(path)))


class RefuseEditable(editable_wheel):
    """An editable install cannot hold upstream's files; the overlay is its substitute."""

    def run(self):
        raise SetupError(
            "this package cannot be installed as editable: use `make overlay` and "
            f"PYTHONPATH={overlay.OVERLAYS}/<python tag>, or `pip install .`"
        )


# Not in the root: Python started there would take it for an installed triton without backends.
EGG_BASE = Path(__file__).resolve().parent / "build"
try:
    EGG_BASE.mkdir(exist_ok=True)
except OSError as error:
    sys.exit(f"error: {steps.explain(error)}")

setup(
    version=source_wheel.VERSION if os.environ.get("TRITON_BASE") == "source" else content.VERSION,
    # The packages come from the upstream wheel; without these lists setuptools would look for some
    # here.
    packages=[],
    py_modules=[],
    options={"egg_info": {"egg_base": str(EGG_BASE)}},
    cmdclass={"bdist_wheel": BuildPatchedWheel, "editable_wheel": RefuseEditable},
)
