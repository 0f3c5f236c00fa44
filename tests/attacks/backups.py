"""Forged backups: entries and lists with matching checksums."""

import hashlib
import io
import tarfile
from pathlib import Path

LIST = "backup.list"
# CRC-32C, bit by bit reflected.
_TABLE = []
for _byte in range(256):
    for _ in range(8):
        _byte = (_byte >> 1) ^ (0x82F63B78 if _byte & 1 else 0)
    _TABLE.append(_byte)


def crc32c(data: bytes) -> int:
    """The checksum of a list."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ _TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def entries(path: Path) -> dict:
    """Names and contents of a tar file, in its order."""
    with tarfile.open(path) as tar:
        return {member.name: tar.extractfile(member).read() for member in tar}


def line_of(path: str, content: bytes, stored: str | None = None) -> str:
    """A file's line in a list."""
    sha256 = hashlib.sha256(content).hexdigest()
    return f"file {len(content)} {crc32c(content):08x} {sha256} {path}\t{stored or path}\n"


def list_of(text: str, change) -> bytes:
    """A list whose lines between the first and the last are changed, with the right last line."""
    lines = text.splitlines(keepends=True)[:-1]
    body = "".join(change(lines))
    return f"{body}end {crc32c(body.encode()):08x}\n".encode()


def with_file(files: dict, name: str, content: bytes) -> dict:
    """A backup with a file that its list names, in place of another of that name."""
    def change(lines):
        return [line for line in lines if f" {name}\t" not in line] + [line_of(name, content)]

    listed = list_of(files[LIST].decode(), change)
    others = {key: value for key, value in files.items() if key not in (LIST, name)}
    return others | {name: content, LIST: listed}


def entry(name: str, content: bytes = b"", kind: bytes = tarfile.REGTYPE, link: str = "") -> tuple:
    """One entry of a tar file."""
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode = kind, link, 0o600
    info.size = len(content) if kind == tarfile.REGTYPE else 0
    return info, content


def write_tar(path: Path, members: list) -> Path:
    """A tar file with these entries, in this order."""
    with tarfile.open(path, "w", format=tarfile.GNU_FORMAT) as tar:
        for info, content in members:
            tar.addfile(info, io.BytesIO(content) if info.isreg() else None)
    return path
