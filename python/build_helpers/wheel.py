"""Write our wheel: the upstream one with the changed files replaced and the added ones added.

    python python/build_helpers/wheel.py [DIST] [--build-dir DIR]

builds the extension (in DIR, by default where the overlay's is built) and the wheel, and prints its
path.  Compressed streams of unchanged files are copied as they are, ours are stored without
compression, and every date is upstream's own, or for our files SOURCE_DATE_EPOCH where that is set:
the bytes depend on nothing but the inputs.
"""

from __future__ import annotations

import argparse
import base64
import binascii
import csv
import hashlib
import io
import os
import struct
import sys
import tempfile
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "third_party"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

from fetch import fetch_wheel, unpack_wheel

from build_helpers import content, extension, steps
from build_helpers.overlay import build_directory

# The records of a zip archive: APPNOTE 4.3.7, 4.3.12, 4.3.16.
_LOCAL = struct.Struct("<4s5H3L2H")
_CENTRAL = struct.Struct("<4s6H3L5H2L")
_END = struct.Struct("<4s4H2LH")
_CHUNK = 1 << 20
_REGULAR_FILE = 0o100644 << 16


@dataclass(frozen=True)
class _Member:
    """One member to write; its bytes are `data`, or else upstream's compressed stream of `info`."""

    name: str
    info: zipfile.ZipInfo
    data: bytes | None = None


def _dos_time(date: tuple[int, int, int, int, int, int]) -> tuple[int, int]:
    year, month, day, hour, minute, second = date
    return hour << 11 | minute << 5 | second // 2, (year - 1980) << 9 | month << 5 | day


def _date_of_changes(
    upstream: tuple[int, int, int, int, int, int],
) -> tuple[int, int, int, int, int, int]:
    """The date of our files: SOURCE_DATE_EPOCH, in UTC and at least 1980 as zip needs, or else
    `upstream`."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    if not epoch:
        return upstream
    if not epoch.isdecimal():
        raise content.ContentError(f"SOURCE_DATE_EPOCH must be seconds since 1970, got {epoch!r}")
    return max(time.gmtime(int(epoch))[:6], (1980, 1, 1, 0, 0, 0))


def _stored(
    name: str, data: bytes, date: tuple[int, int, int, int, int, int], attributes: int
) -> _Member:
    info = zipfile.ZipInfo(name, date)
    info.external_attr, info.create_system = attributes, 3
    info.CRC = binascii.crc32(data)
    info.file_size = info.compress_size = len(data)
    return _Member(name, info, data)


def _copy_stream(source: BinaryIO, info: zipfile.ZipInfo, target: BinaryIO) -> None:
    source.seek(info.header_offset)
    header = _LOCAL.unpack(source.read(_LOCAL.size))
    source.seek(header[9] + header[10], os.SEEK_CUR)  # the name and the extra field
    left = info.compress_size
    while left:
        chunk = source.read(min(left, _CHUNK))
        if not chunk:
            raise content.ContentError(f"the upstream wheel ends within {info.filename}")
        target.write(chunk)
        left -= len(chunk)


def _write_archive(source: BinaryIO, members: list[_Member], target: BinaryIO) -> None:
    """Write `members`; names and sizes are below the limits that would need zip64."""
    central = []
    for member in members:
        info, offset = member.info, target.tell()
        if max(info.file_size, offset) >= 0xFFFFFFFF:
            raise content.ContentError(
                f"{member.name}: archives of 4 GiB and more are not supported"
            )
        name = member.name.encode()
        flags = 0 if name.isascii() else 0x800
        time_, date = _dos_time(info.date_time)
        common = (
            20,
            flags,
            info.compress_type,
            time_,
            date,
            info.CRC,
            info.compress_size,
            info.file_size,
        )
        target.write(_LOCAL.pack(b"PK\3\4", *common, len(name), 0) + name)
        if member.data is None:
            _copy_stream(source, info, target)
        else:
            target.write(member.data)
        made_by = info.create_system << 8 | 20
        central.append(
            _CENTRAL.pack(
                b"PK\1\2", made_by, *common, len(name), 0, 0, 0, 0, info.external_attr, offset
            )
            + name
        )
    start, directory = target.tell(), b"".join(central)
    count = len(members)
    target.write(directory)
    target.write(_END.pack(b"PK\5\6", 0, 0, count, count, len(directory), start, 0))


def _record_line(path: str, data: bytes) -> tuple[str, str, str]:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return path, f"sha256={digest}", str(len(data))


def write_wheel(upstream: Path, site: Path, built_extension: Path, out_dir: Path) -> Path:
    """Write our wheel into `out_dir` and return its path.

    upstream: upstream's wheel; site: the same, unpacked.  Raises patching.PatchError or
    content.ContentError; a wheel appears under its name only when it is complete.
    """
    changed = content.changed_files(site, built_extension)
    changed |= {f"{content.DIST_INFO}/{k}": v for k, v in content.changed_metadata(site).items()}
    record_path = f"{content.DIST_INFO}/RECORD"

    def renamed(path: str) -> str:
        return path.replace(content.UPSTREAM_DIST_INFO, content.DIST_INFO, 1)

    tags = upstream.name.removeprefix(f"triton-{content.UPSTREAM_VERSION}-")
    if tags == upstream.name:
        raise content.ContentError(f"{upstream} is no wheel of triton {content.UPSTREAM_VERSION}")
    target = out_dir / f"triton-{content.VERSION}-{tags}"
    out_dir.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(upstream) as archive, upstream.open("rb") as source:
        infos = archive.infolist()
        old_record = archive.read(f"{content.UPSTREAM_DIST_INFO}/RECORD").decode()
        date = _date_of_changes(archive.getinfo(f"{content.UPSTREAM_DIST_INFO}/METADATA").date_time)
        members, seen = [], set()
        for info in infos:
            name = renamed(info.filename)
            if name == record_path:
                continue
            seen.add(name)
            if name in changed:
                members.append(_stored(name, changed[name], date, info.external_attr))
            else:
                members.append(_Member(name, info))
        added = sorted(set(changed) - seen)
        members += [_stored(name, changed[name], date, _REGULAR_FILE) for name in added]
        rows = []
        for path, digest, size in csv.reader(io.StringIO(old_record)):
            name = renamed(path)
            if name != record_path:
                rows.append(
                    _record_line(name, changed[name]) if name in changed else (name, digest, size)
                )
        rows += [_record_line(name, changed[name]) for name in added]
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([*rows, (record_path, "", "")])
        members.append(_stored(record_path, text.getvalue().encode(), date, _REGULAR_FILE))
        handle, staging = tempfile.mkstemp(prefix=".triton-", suffix=".whl", dir=out_dir)
        try:
            with os.fdopen(handle, "wb") as file:
                _write_archive(source, members, file)
            Path(staging).chmod(0o644)
            Path(staging).replace(target)
        finally:
            Path(staging).unlink(missing_ok=True)
    return target


def build(out_dir: Path, jobs: int | None = None, build_dir: Path | None = None) -> Path:
    """Build the extension and the wheel for the running Python into `out_dir`; return the wheel's
    path.

    build_dir: where the extension is built, by default where the overlay's is.

    Raises FetchError, BuildError, PatchError or ContentError.
    """
    site = unpack_wheel()
    built = extension.build_extension(site, build_dir or build_directory(site), jobs=jobs)
    return write_wheel(fetch_wheel(), site, built, out_dir)


def main() -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("dist", type=Path, nargs="?", default=content.REPO / "dist")
    parser.add_argument("--build-dir", type=Path, help="where the extension is built")
    options = parser.parse_args()
    start = time.monotonic()
    try:
        wheel = build(options.dist, build_dir=options.build_dir)
    except steps.FAILURES as error:
        print(f"wheel.py: {steps.explain(error)}", file=sys.stderr)
        return 1
    print(f"[wheel] {time.monotonic() - start:.1f} s", file=sys.stderr)
    print(wheel)
    return 0


if __name__ == "__main__":
    sys.exit(main())
