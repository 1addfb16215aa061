"""Refuses an extension that does not fit the libtriton.so that it will be loaded beside.

    python python/build_helpers/abi_gate.py EXTENSION --site SITE --module MLIR
                                            [--output SO] [--strip STRIP] [--verbose]
                                            [--llvm-version VERSION]

The extension is compiled against LLVM headers that are near libtriton's, not the same, so each
build proves three things:

(a) every symbol that the extension leaves undefined, and that no versioned system library
    provides, is libtriton's;
(b) every vtable that the extension emits agrees with libtriton's own: of the same class where
    libtriton has one, else of its nearest base class and that base's other subclasses: the number
    of slots, their order, their functions;
(c) the pass scan_abi_selftest, which reads and builds IR through the headers' inline code, agrees
    with what libtriton prints and verifies (lib/Extension/AbiSelfTest.cpp), run in a process of
    its own on the module MLIR.

Part (b) takes the names of hidden and inline functions from the symbol tables: upstream's wheel is
not stripped, and EXTENSION must not be either. If it passes, it is stripped into SO and what was
compared is written beside it as JSON, which the wheel keeps (`python -m triton.tools.scan_report`
prints it); if not, both are removed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import struct
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from elftools.elf.elffile import ELFFile

WAY_OUT = (
    "Set LLVM_SYSPATH to an LLVM and MLIR install of the commit named in "
    "third_party/llvm-headers.lock.json and build again."
)
# (a relocation that adds the load address, those that name a symbol) by machine
RELOCATIONS = {"EM_X86_64": (8, {1, 6}), "EM_AARCH64": (1027, {257, 1025})}
PURE = "__cxa_pure_virtual"
SELF_TEST = Path(__file__).with_name("abi_selftest.py")


class AbiMismatch(RuntimeError):
    """The extension does not fit libtriton.so; the text names what differs."""


class CannotCheck(RuntimeError):
    """The running Python cannot import libtriton.so; the text says why."""


@dataclass
class Binary:
    """What the gate needs of a shared object.

    defined: dynamic symbols that it defines
    undefined: dynamic symbol that it needs -> (the need is weak, a versioned library provides it)
    vtables: mangled name (_ZTV...) -> (address, size in bytes)
    names: address -> every symbol there
    slots: address -> name of the imported symbol or local address that a relocation stores there
    """

    defined: set[str] = field(default_factory=set)
    undefined: dict[str, tuple[bool, bool]] = field(default_factory=dict)
    vtables: dict[str, tuple[int, int]] = field(default_factory=dict)
    names: dict[int, set[str]] = field(default_factory=lambda: defaultdict(set))
    slots: dict[int, str | int] = field(default_factory=dict)
    words: list[tuple[int, bytes]] = field(default_factory=list)

    def word(self, address: int) -> int:
        """The signed 64-bit number in the file at `address`."""
        for start, data in self.words:
            if start <= address < start + len(data):
                return struct.unpack_from("<q", data, address - start)[0]
        return 0


def read_binary(path: Path) -> Binary:
    """Reads symbols, vtables and relocations of a shared object (little-endian, 64 bits)."""
    binary = Binary()
    with path.open("rb") as file:
        elf = ELFFile(file)
        relative, symbolic = RELOCATIONS[elf["e_machine"]]
        dynamic = _symbols(elf, ".dynsym", ".dynstr")
        versions = _versions(elf)
        for index, (name, _, section, _, bind) in enumerate(dynamic):
            if section:
                binary.defined.add(name)
            elif name:
                binary.undefined[name] = (bind == 2, versions[index] > 1 if versions else False)
        for name, kind, section, (value, size), _ in dynamic + _symbols(elf, ".symtab", ".strtab"):
            if not section or kind > 2:  # only data, functions and those without a type
                continue
            if name.startswith("_ZTV"):
                binary.vtables[name] = (value, size)
            binary.names[value].add(name)
        for section in (".rela.dyn", ".rela.plt"):
            if table := elf.get_section_by_name(section):
                for offset, info, addend in struct.iter_unpack("<QQq", table.data()):
                    if info & 0xFFFFFFFF == relative:
                        binary.slots[offset] = addend
                    elif info & 0xFFFFFFFF in symbolic:
                        binary.slots[offset] = dynamic[info >> 32][0]
        for section in elf.iter_sections():
            if section.name.startswith(".data.rel.ro") or section.name == ".data":
                binary.words.append((section["sh_addr"], section.data()))
    return binary


def _symbols(elf: ELFFile, table: str, strings: str) -> list[tuple]:
    """(name, type, section, (value, size), binding) of each symbol; [] if there is no table."""
    section, names = elf.get_section_by_name(table), elf.get_section_by_name(strings)
    if not section:
        return []
    text, out = names.data(), []
    for name, info, _, index, value, size in struct.iter_unpack("<IBBHQQ", section.data()):
        name = text[name : text.index(b"\0", name)].decode()
        out.append((name, info & 15, index, (value, size), info >> 4))
    return out


def _versions(elf: ELFFile) -> list[int]:
    """The version index of each dynamic symbol; above 1 where a library's version is named."""
    section = elf.get_section_by_name(".gnu.version")
    return [v & 0x7FFF for (v,) in struct.iter_unpack("<H", section.data())] if section else []


# (a) symbols


def check_symbols(extension: Binary, libtriton: Binary) -> None:
    """Part (a). Raises AbiMismatch that names the symbols nobody would define."""
    missing = []
    for name, (weak, versioned) in extension.undefined.items():
        # gcc's start files ask weakly for C symbols that may be absent.
        optional = weak and not name.startswith("_Z")
        if not versioned and not optional and name not in libtriton.defined:
            missing.append(name)
    if missing:
        names = ", ".join(sorted(demangle(missing).values())[:5])
        more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
        raise AbiMismatch(f"libtriton.so does not define {names}{more}")


# (b) vtables


def demangle(names: list[str]) -> dict[str, str]:
    """C++ names as people read them, by mangled name."""
    names = list(dict.fromkeys(names))
    text = subprocess.run(
        ["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True
    )
    return dict(zip(names, text.stdout.splitlines(), strict=True))


@dataclass(frozen=True)
class Method:
    """A slot's function: its class, its name, and its name with parameters and qualifiers."""

    owner: str
    name: str
    signature: str


def parse_method(text: str) -> Method | None:
    """Splits a demangled member function; None if it is none."""
    text = text.replace("(anonymous namespace)", "{anonymous}")
    depth, last, end = 0, -1, len(text)
    for i, c in enumerate(text):
        if c in "<({":
            if c == "(" and depth == 0:
                end = i
                break
            depth += 1
        elif c in ">)}":
            depth -= text[i - 1] != "-" or c != ">"
        elif c == ":" and depth == 0 and text[i - 1] == ":":
            last = i
    if last < 0:
        return None
    name = text[last + 1 : end]
    if name.startswith("~"):
        name = "~"
    return Method(text[: last - 1], name, name + text[end:])


def subtables(binary: Binary, vtable: str) -> list[list[set[str] | None]]:
    """The slots of the vtable's parts, one part a polymorphic base.

    A slot is the set of names at its function's address; None where none is known. The two words
    before each part, the offset to the top and the type information, are left out.
    """
    start, size = binary.vtables[vtable]
    parts: list[list[set[str] | None]] = []
    address, end = start, start + size
    while address < end:
        is_header = address not in binary.slots and (address == start or binary.word(address) < 0)
        if is_header:
            parts.append([])
            address += 16
            continue
        value = binary.slots.get(address)
        if isinstance(value, int):
            parts[-1].append(binary.names.get(value) or None)
        elif value is None:
            parts[-1].append({PURE})  # an abstract class' unused destructors are zero
        else:
            parts[-1].append({value})
        address += 8
    return parts


class Names:
    """Methods by mangled name, demangled in batches."""

    def __init__(self) -> None:
        self.known: dict[str, Method | None] = {}

    def load(self, names: set[str]) -> None:
        """Demangles what is not known yet."""
        new = [n for n in names if n not in self.known]
        if new:
            self.known.update({n: parse_method(t) for n, t in demangle(new).items()})

    def methods(self, slot: set[str] | None) -> list[Method]:
        """The member functions at a slot."""
        self.load(slot or set())
        return [m for n in sorted(slot or ()) if (m := self.known[n])]


def check_vtables(extension: Binary, libtriton: Binary) -> list[str]:
    """Part (b). Returns the vtables compared, each with the class it was compared with.

    Raises AbiMismatch that names the class and the slot.
    """
    names = Names()
    own = [v for v in extension.vtables if not re.match("_ZTVN?S", v)]  # not the standard library's
    ours = {v: parts for v in own if (parts := subtables(extension, v))}
    slots = [slot for parts in ours.values() for part in parts for slot in part]
    names.load({n for slot in slots for n in slot or ()})
    classes = demangle(list(ours))
    report = []
    for vtable, parts in sorted(ours.items()):
        name = classes[vtable].removeprefix("vtable for ")
        if vtable in libtriton.vtables:
            theirs = subtables(libtriton, vtable)
            if [len(p) for p in parts] != [len(p) for p in theirs]:
                raise AbiMismatch(
                    f"the vtable of {name} has {_sizes(parts)} slots here and {_sizes(theirs)} in "
                    "libtriton.so"
                )
            for part, their_part in zip(parts, theirs, strict=True):
                _compare(names, name, part, their_part, [])
            report.append(f"{name}: its own")
            continue
        base = _nearest_base(names, parts[0], name, libtriton)
        if not base:
            # An abstract class of which libtriton kept only the subclasses' vtables.
            functions = {n for slot in parts[0] for n in slot or () if n != PURE}
            heirs = _holders(libtriton, functions)
            if heirs:
                shortest = min(map(len, heirs))
                if len(parts[0]) > shortest:
                    raise AbiMismatch(
                        f"the vtable of {name} has {len(parts[0])} slots; a subclass in "
                        f"libtriton.so has {shortest}"
                    )
                _compare(names, name, parts[0], [{PURE}] * len(parts[0]), heirs)
                report.append(f"{name}: {len(heirs)} subclasses")
            elif re.match(r"(mlir|llvm)::(?!triton::scan)", name):
                raise AbiMismatch(
                    f"libtriton.so has no vtable of {name}, a base or a subclass to compare with"
                )
            else:
                report.append(f"{name}: not LLVM's")
            continue
        family = _family(libtriton, base)
        sizes = sorted({len(part) for part in family})
        if len(parts[0]) not in sizes:
            raise AbiMismatch(
                f"the vtable of {name} has {len(parts[0])} slots; in libtriton.so "
                f"{_demangled(base)} and its subclasses have {' or '.join(map(str, sizes))}"
            )
        same_size = [part for part in family if len(part) == len(parts[0])]
        _compare(names, name, parts[0], subtables(libtriton, base)[0], same_size)
        report.append(f"{name}: {_demangled(base)} and {len(same_size)} subclasses")
    return report


def _sizes(parts: list[list]) -> str:
    return "+".join(str(len(part)) for part in parts)


def _demangled(vtable: str) -> str:
    return demangle([vtable])[vtable].removeprefix("vtable for ")


def _nearest_base(names: Names, part: list, name: str, libtriton: Binary) -> str | None:
    """libtriton's longest vtable of a class, not `name`, that a slot's function belongs to."""
    owners = {}
    for slot in part:
        for mangled in slot or ():
            method = names.known[mangled]
            if method and method.owner != name:
                owners[method.owner] = _class_of(mangled)
    found = [v for c in owners.values() if c and (v := f"_ZTV{c}") in libtriton.vtables]
    return max(found, key=lambda v: libtriton.vtables[v][1], default=None)


def _class_of(mangled: str) -> str | None:
    """The mangled class of a mangled member function: _ZNK4mlir4Pass7getNameEv -> N4mlir4PassE."""
    nested = re.match(r"_ZN(?:[VK]*[RO]?)(.*)", mangled)
    if not nested:
        return None
    text, at, starts, depth = nested[1], 0, [], 0
    # Walk the components; the last one before E is the function.
    while at < len(text):
        if depth == 0 and text[at] == "E":
            break
        if match := re.match(r"(\d+)", text[at:]):
            if depth == 0:
                starts.append(at)
            at += len(match[1]) + int(match[1])
        elif text[at] in "IXNFJL" and (depth or text[at] in "IN"):
            depth += 1
            at += 1
        elif text[at] == "E":
            depth -= 1
            at += 1
        elif depth == 0 and re.match(r"[CD][0-5]", text[at:]):
            starts.append(at)
            at += 2
        else:
            at += 1
    return f"N{text[: starts[-1]]}E" if len(starts) > 1 else None


def _family(libtriton: Binary, base: str) -> list[list[set[str] | None]]:
    """The first parts of libtriton's vtables that are of `base` or inherit a function of it."""
    functions = {n for slot in subtables(libtriton, base)[0] for n in slot or ()}
    return _holders(libtriton, {n for n in functions if _class_of(n) == base.removeprefix("_ZTV")})


def _holders(libtriton: Binary, functions: set[str]) -> list[list[set[str] | None]]:
    """The first parts of the vtables in libtriton that hold one of the functions."""
    tables = [subtables(libtriton, v) for v in libtriton.vtables if not re.match("_ZTVN?S", v)]
    first = [parts[0] for parts in tables if parts]
    return [part for part in first if any(slot and slot & functions for slot in part)]


def _compare(names: Names, name: str, ours: list, theirs: list, family: list) -> None:
    """Requires the same function, or an override of it, in each slot that both sides name."""
    for i, our_slot in enumerate(ours):
        their_slot = theirs[i] if i < len(theirs) else {PURE}
        mine = names.methods(our_slot)
        if our_slot is None or their_slot is None or not mine or our_slot & their_slot:
            continue
        if their_slot == {PURE}:
            # The base says nothing of this slot; its subclasses do, with parameters of their own.
            slots = [part[i] for part in family if part[i] and part[i] != {PURE}]
            known = {m.name for slot in slots for m in names.methods(slot)}
            if not known or known & {m.name for m in mine}:
                continue
            there = " or ".join(sorted(known)[:3])
        else:
            other = names.methods(their_slot)
            if not other or {m.signature for m in mine} & {m.signature for m in other}:
                continue
            there = f"{other[0].owner}::{other[0].signature}"
        raise AbiMismatch(
            f"slot {i} of the vtable of {name} is {mine[0].owner}::{mine[0].signature} here and "
            f"{there} in libtriton.so"
        )


# (c) self-test


def run_self_test(extension: Path, libtriton: Path, module: Path) -> None:
    """Part (c). Raises AbiMismatch with what the pass reports, or how the process died.

    Raises CannotCheck if the running Python cannot import libtriton.so.
    """
    command = [sys.executable, str(SELF_TEST), str(libtriton), str(extension), str(module)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if done.returncode == 0:
        return
    if "imported" not in done.stdout.splitlines():
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        raise CannotCheck(
            f"Python {version} ({sys.executable}) cannot import {libtriton}; build with the Python "
            "that the wheel is for"
        )
    words = [line for line in done.stderr.splitlines() if line.strip()]
    reason = next((w for w in words if "error: " in w), words[-1] if words else "it said nothing")
    if done.returncode < 0:
        reason = f"the process was ended by signal {-done.returncode}; {reason}"
    raise AbiMismatch(f"the self-test failed: {reason.split('error: ')[-1]}")


def libtriton_of(site: Path) -> Path:
    """The library that an unpacked wheel's extensions are loaded beside."""
    return site / "triton/_C/libtriton.so"


def check(extension: Path, site: Path, module: Path) -> dict:
    """Runs the three parts; returns what they compared, for the record. Raises AbiMismatch."""
    libtriton_path = libtriton_of(site)
    ours, libtriton = read_binary(extension), read_binary(libtriton_path)
    check_symbols(ours, libtriton)
    compared = check_vtables(ours, libtriton)
    run_self_test(extension, libtriton_path, module)
    symbols = sum(name in libtriton.defined for name in ours.undefined)
    return {"symbols": symbols, "vtables": compared, "self_test": "passed"}


def compilers_of(binary: Path) -> list[str]:
    """What the compilers of a shared object left in its .comment section, each once."""
    with binary.open("rb") as file:
        section = ELFFile(file).get_section_by_name(".comment")
        text = section.data().decode(errors="replace") if section else ""
    return sorted({part for part in text.split("\0") if part})


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_record(options: argparse.Namespace, gate: dict) -> None:
    """Writes the record beside the stripped extension: no dates and no paths, so that the same
    sources give the same bytes."""
    record = {
        "extension_sha256": _digest(options.output),
        "libtriton_sha256": _digest(libtriton_of(options.site)),
        "llvm_headers": options.llvm_version,
        "compilers": compilers_of(options.extension),
        "gate": gate,
    }
    options.output.with_suffix(".json").write_text(json.dumps(record, indent=1) + "\n")


def main(arguments: list[str] | None = None) -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(description="Check an extension against libtriton.so.")
    parser.add_argument("extension", type=Path)
    parser.add_argument("--site", type=Path, required=True, help="unpacked upstream wheel")
    parser.add_argument("--module", type=Path, required=True, help="module for the self-test pass")
    parser.add_argument("--output", type=Path, help="where the stripped extension goes")
    parser.add_argument("--strip", default="strip", help="the strip tool")
    parser.add_argument("--llvm-version", help="version of the LLVM headers, for the record")
    parser.add_argument("--verbose", action="store_true", help="list the vtables compared")
    options = parser.parse_args(arguments)
    if options.output:
        options.output.unlink(missing_ok=True)
        options.output.with_suffix(".json").unlink(missing_ok=True)
    try:
        gate = check(options.extension, options.site, options.module)
    except AbiMismatch as error:
        print(f"ABI gate refused {options.extension.name}: {error}. {WAY_OUT}", file=sys.stderr)
        return 1
    except CannotCheck as error:
        print(f"ABI gate cannot run: {error}", file=sys.stderr)
        return 1
    if options.verbose:
        print(*gate["vtables"], sep="\n")
    if options.output:
        part = options.output.with_name(options.output.name + ".part")
        subprocess.run([options.strip, "--strip-all", "-o", part, options.extension], check=True)
        part.rename(options.output)
        write_record(options, gate)
    return 0


if __name__ == "__main__":
    sys.exit(main())
