"""The native lowering of tl.associative_scan: loads the extension and puts its pass into a
pipeline.

`triton/_C/libtriton_scan.so` is loaded at most once in a process, at the first compilation that
wants it.  A file that is missing, damaged or built for another Triton never stops a program: one
warning says why, and scans go through upstream's lowering (as they do with TRITON_NATIVE_SCAN=0,
silently).

In a Triton that was built from source with the lowering inside (the source base), libtriton has the
passes itself, in its module `native_scan`, and nothing is loaded.

`python -m triton.tools.scan_opt --status` prints the state.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import threading
import warnings
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from triton import knobs

EXTENSION_PATH = Path(__file__).parent / "_C" / "libtriton_scan.so"
CHECKSUM_PATH = EXTENSION_PATH.with_suffix(".sha256")
# TRITON_PLUGIN_API_VERSION of triton/include/triton/Tools/PluginUtils.h, release 3.9.0
PLUGIN_API_VERSION = 2
# The passes of the lowering, in their order.
LOWERING = ("choose_scan_layout", "lower_flip", "lower_scan")
# The one that runs before upstream's passes over TTGIR.
CHECK = "check_combines"
# Those that run around upstream's warp specialisation.
AROUND_WARP_SPECIALIZATION = ("outline_scans", "inline_scans")

_NATIVE, _OFF, _UNAVAILABLE = "native-", "off", "unavailable"
_load_lock = threading.Lock()
# The extension, or libtriton's own module with the passes.
_Library = ctypes.CDLL | ModuleType
_loaded: tuple[_Library | None, str | None] | None = None


class ScanLoweringError(RuntimeError):
    """The native lowering refused a scan; the text is the pass's own diagnostic."""


class ExtensionError(Exception):
    """The extension cannot be loaded; the text says why."""


@dataclass(frozen=True)
class Status:
    """What `status()` reports.  `reason` says why the extension is not available, else None."""

    enabled: bool
    available: bool
    path: Path
    build: str
    reason: str | None


class _PassInfo(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("version", ctypes.c_char_p),
        ("add_pass", ctypes.c_void_p),
        ("register_pass", ctypes.c_void_p),
    )


class _PluginInfo(ctypes.Structure):
    # The layout of mlir::triton::plugin::PluginInfo.
    _fields_ = (
        ("api_version", ctypes.c_uint32),
        ("name", ctypes.c_char_p),
        ("version", ctypes.c_char_p),
        ("passes", ctypes.POINTER(_PassInfo)),
        ("num_passes", ctypes.c_size_t),
        ("dialects", ctypes.c_void_p),
        ("num_dialects", ctypes.c_size_t),
        ("ops", ctypes.c_void_p),
        ("num_ops", ctypes.c_size_t),
        ("triton_version", ctypes.c_char_p),
    )


def _open_checked(path: Path) -> ctypes.CDLL:
    """Open the extension and check what libtriton would abort on, or not check at all."""
    from triton import __version__
    from triton._C import libtriton  # noqa: F401  (the extension's symbols come from it)

    if not path.is_file():
        raise ExtensionError(f"{path} does not exist")
    # Opening a damaged library can end the process (a truncated one raises SIGBUS).
    if not CHECKSUM_PATH.is_file():
        raise ExtensionError(f"{CHECKSUM_PATH}, the sha256 of the extension, does not exist")
    if CHECKSUM_PATH.read_text().strip() != hashlib.sha256(path.read_bytes()).hexdigest():
        raise ExtensionError(f"{path} is damaged: its sha256 is not that of {CHECKSUM_PATH.name}")
    try:
        # RTLD_NOW: a symbol that this libtriton lacks is found here.  libtriton itself opens
        # extensions lazily, and the process would then end at the first call.
        library = ctypes.CDLL(str(path), mode=os.RTLD_NOW | os.RTLD_LOCAL)
    except OSError as error:
        raise ExtensionError(str(error)) from None
    try:
        get_info = library.tritonGetPluginInfo
    except AttributeError:
        raise ExtensionError(f"{path} is no Triton extension (no tritonGetPluginInfo)") from None
    get_info.restype = ctypes.POINTER(_PluginInfo)
    info = get_info().contents
    # The version of the API first: with another one, the other fields may lie elsewhere.
    if info.api_version != PLUGIN_API_VERSION:
        raise ExtensionError(
            f"{path} has plugin API version {info.api_version}, "
            f"this Triton has {PLUGIN_API_VERSION}"
        )
    built_for = (info.triton_version or b"").decode(errors="replace")
    if built_for != __version__:
        raise ExtensionError(f"{path} was built for Triton {built_for}, this is {__version__}")
    names = [(info.passes[i].name or b"").decode() for i in range(info.num_passes)]
    wanted = (CHECK, *LOWERING, *AROUND_WARP_SPECIALIZATION)
    if missing := [name for name in wanted if name not in names]:
        raise ExtensionError(f"{path} lacks the pass {missing[0]} (it has: {', '.join(names)})")
    return library


def _built_in() -> ModuleType | None:
    """Return libtriton's own module with the passes, None where they are an extension."""
    from triton._C import libtriton

    return getattr(libtriton, "native_scan", None)


def is_built_in() -> bool:
    """Return whether libtriton was built with the lowering inside (the source base)."""
    return _built_in() is not None


def _load_now() -> tuple[_Library | None, str | None]:
    from triton._C.libtriton import passes

    if (module := _built_in()) is not None:
        return module, None
    try:
        library = _open_checked(EXTENSION_PATH)
        passes.plugin.extend_with(str(EXTENSION_PATH))
    except (ExtensionError, RuntimeError) as error:
        return None, str(error)
    return library, None


def _load() -> tuple[_Library | None, str | None]:
    """Return (library, None), or (None, why it cannot be loaded); loads at the first call only."""
    global _loaded
    if _loaded is None:
        with _load_lock:
            if _loaded is None:
                _loaded = _load_now()
    return _loaded


@functools.cache
def _warn_unavailable(reason: str) -> None:
    warnings.warn(
        f"the native scan lowering cannot be loaded, so upstream's is used: {reason}. "
        "Reinstall this build of triton, or set TRITON_NATIVE_SCAN=0 to silence this warning.",
        RuntimeWarning,
        stacklevel=2,
    )


@functools.cache
def build_hash() -> str:
    """Return the sha256 of this file and, where there is one, the extension's bytes.

    The bytes of libtriton, which may have the passes itself, are in triton_key() anyway.
    """
    digest = hashlib.sha256(Path(__file__).read_bytes())
    if EXTENSION_PATH.is_file():
        digest.update(EXTENSION_PATH.read_bytes())
    return digest.hexdigest()


@functools.cache
def _native_key() -> str:
    return _NATIVE + build_hash()


def cache_key() -> str:
    """Return what cache keys must contain: which lowering is used now, and which build of it.

    Called at every launch: it reads the knob and one cached string.
    """
    if not knobs.scan.native:
        return _OFF
    library, reason = _load()
    if library is None:
        _warn_unavailable(reason)
        return _UNAVAILABLE
    return _native_key()


def resolve(requested: object) -> str:
    """Return the compile option `native_scan` for a requested value.

    A key of this process (from the launch that started an asynchronous compilation, say) is kept;
    anything else, such as None or a key of another build in stored options, becomes the current
    one.
    """
    if isinstance(requested, str):
        if requested == _OFF:
            return requested
        if requested.startswith(_NATIVE) and requested == _native_key() and _load()[0] is not None:
            return requested
    return cache_key()


def is_native(option: str | None) -> bool:
    """Return whether the compile option `native_scan` stands for the native lowering.

    None, the option of a backend that does not run the passes, does not.
    """
    return option is not None and resolve(option).startswith(_NATIVE)


def is_enabled() -> bool:
    """Return whether a compilation started now would use the native lowering."""
    return cache_key().startswith(_NATIVE)


def status() -> Status:
    """Return the state of the lowering, without a warning."""
    library, reason = _load()
    available = library is not None
    path = EXTENSION_PATH
    if isinstance(library, ModuleType):
        from triton._C import libtriton

        path = Path(libtriton.__file__)
    return Status(available and knobs.scan.native, available, path, build_hash(), reason)


def load() -> _Library:
    """Load the extension, which adds its passes to `passes.plugin`, unless libtriton has them.  May
    raise ExtensionError."""
    library, reason = _load()
    if library is None:
        raise ExtensionError(reason)
    return library


def add_pass(pm, name: str) -> None:
    """Add a pass of the lowering to the pass manager.  May raise ExtensionError."""
    from triton._C.libtriton import passes

    library = load()
    wants_remarks = name in ("outline_scans", "lower_flip", "lower_scan") and knobs.scan.remarks
    if isinstance(library, ModuleType):
        if not hasattr(library, f"add_{name}"):
            raise ExtensionError(f"this Triton, built from source, has no pass {name}")
        getattr(library, f"add_{name}")(pm, *([True] if wants_remarks else []))
    else:
        getattr(passes.plugin, f"add_{name}")(pm, ["remarks"] if wants_remarks else [])


def add_lowering(pm) -> None:
    """Add the lowering of tt.scan to the pass manager.  May raise ExtensionError."""
    library = load()
    for name in LOWERING:
        # The Triton of the source base has no native flips.
        if isinstance(library, ctypes.CDLL) or hasattr(library, f"add_{name}"):
            add_pass(pm, name)


def _take_error(library: _Library) -> str | None:
    """Return, once, the first error that a pass of the lowering reported on this thread."""
    if isinstance(library, ModuleType):
        return library.take_error()
    if (take := getattr(library, "tritonScanTakeError", None)) is None:
        return None
    take.restype = ctypes.c_char_p
    text = take()
    return None if text is None else text.decode(errors="replace")


def _run(pm, module, label: str) -> None:
    # The Triton of the source base gives its runs no labels.
    pm.run(module, *([] if is_built_in() else [label]))


def run_reporting(pm, module, label: str) -> None:
    """Run the pass manager; raises ScanLoweringError with the text of a pass's own diagnostic."""
    library = load()
    _take_error(library)  # nothing old
    try:
        _run(pm, module, label)
    except RuntimeError as error:
        if (text := _take_error(library)) is None:
            raise
        raise ScanLoweringError(text) from error


def _run_alone(module, name: str) -> None:
    """Run one pass of ours; a run of its own tells its refusals from other passes' failures."""
    from triton._C.libtriton import ir

    pm = ir.pass_manager(module.context)
    pm.enable_debug()
    add_pass(pm, name)
    run_reporting(pm, module, name)


def check_combines(module, option: str | None) -> None:
    """Raise ScanLoweringError where the native lowering, if `option` chose it (see resolve()),
    would refuse a combine function."""
    if resolve(option).startswith(_NATIVE):
        _run_alone(module, CHECK)


def run_pass(pm, module, name: str, option: str | None):
    """Run `pm`, then a pass of ours, and return a fresh pass manager.

    With another lowering chosen by `option` (see resolve()), nothing is run and `pm` is returned.
    """
    if not resolve(option).startswith(_NATIVE):
        return pm
    from triton._C.libtriton import ir

    _run(pm, module, f"before {name}")
    _run_alone(module, name)
    fresh = ir.pass_manager(module.context)
    fresh.enable_debug()
    return fresh


def set_target(module, target: str) -> None:
    """Make the module name `target`, 'cuda:90' say: the lowering lowers for what the module names.

    TTGIR that was written by hand may name no target, or another than it is compiled for.
    """
    if (built_in := _built_in()) is not None:
        built_in.set_target(module, target)
        return
    from triton._C.libtriton import ir

    module.set_attr("ttg.target", ir.builder(module.context).get_string_attr(target))


def lower(pm, module, option: str | None, target: str):
    """Run `pm` with the lowering of scans added at its end and return a fresh pass manager.

    Lowers for `target` (see set_target()), whatever the module names.
    With another lowering chosen by `option` (see resolve()), nothing is run and `pm` is returned.
    The source base refuses the scans that neither lowering gets right there (CheckScans.cpp).
    A run of its own, so that a refusal is told apart from the failures of the passes that follow.
    """
    is_chosen = resolve(option).startswith(_NATIVE)
    if is_built_in():
        add_pass(pm, "check_scans")
    elif not is_chosen:
        return pm
    if is_chosen:
        set_target(module, target)
        add_lowering(pm)
    from triton._C.libtriton import ir

    run_reporting(pm, module, "make_llir.native_scan")
    fresh = ir.pass_manager(module.context)
    fresh.enable_debug()
    return fresh
