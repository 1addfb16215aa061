"""Fails if a Python module uses what neither it nor Python nor a system library defines.

    python python/build_helpers/undefined.py NM LIBRARY

A module leaves Python's own symbols to the interpreter that loads it, so the linker cannot be told
to refuse all undefined ones (-z defs), and what MLIR declares and nobody defines would come to
light when it is called.
"""

from __future__ import annotations

import re
import subprocess
import sys

# Of the C++ namespaces that are linked statically; Itanium mangling has lengths before names.
_OURS = re.compile(r"^_Z\w*(4llvm|4mlir|6triton)")


def undefined(nm: str, library: str) -> list[str]:
    """Return the undefined symbols of LLVM, MLIR and Triton in a shared library."""
    command = [nm, "--dynamic", "--undefined-only", "--just-symbol-name", library]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return [name for name in done.stdout.split() if _OURS.match(name)]


def main() -> int:
    """The command line; returns the exit status."""
    nm, library = sys.argv[1:]
    names = undefined(nm, library)
    for name in names:
        print(f"error: {library} uses {name}, which nothing defines", file=sys.stderr)
    return bool(names)


if __name__ == "__main__":
    sys.exit(main())
