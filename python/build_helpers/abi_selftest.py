"""Runs the pass scan_abi_selftest; a program of its own because a wrong extension may crash.

python abi_selftest.py LIBTRITON_SO EXTENSION_SO MODULE
"""

from __future__ import annotations

import importlib.util
import sys


def main() -> int:
    """The command line; prints `imported` early; exit status 0 if the pass agrees."""
    libtriton_path, extension, module_path = sys.argv[1:]
    # By path, because importing the triton package may load another extension.
    spec = importlib.util.spec_from_file_location("libtriton", libtriton_path)
    libtriton = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(libtriton)
    # An import by another Python than the wheel's raises or crashes; abi_gate.py tells it by this.
    print("imported", flush=True)
    libtriton.passes.plugin.extend_with(extension)
    context = libtriton.ir.context()
    libtriton.ir.load_dialects(context)
    libtriton.nvidia.load_dialects(context)
    module = libtriton.ir.parse_mlir_module(module_path, context)
    module.context = context
    manager = libtriton.ir.pass_manager(context)
    libtriton.passes.plugin.add_scan_abi_selftest(manager, [])
    try:
        manager.run(module, "scan_abi_selftest")
    except RuntimeError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
