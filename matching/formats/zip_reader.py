"""The entries of a zip file that a stranger made: judged by name before, and by size while they are read."""

from __future__ import annotations

import io
import re
import stat
import zipfile
from collections.abc import Callable
from pathlib import PurePosixPath

from matching.errors import InvalidFileError, Issue
from matching.formats.decode import printable
from matching.formats.faults import Faults

__all__ = ["MOST_BYTES", "hidden", "zip_entries"]

MOST_BYTES = 2 << 30  # unpacked, all entries read together; a larger venue comes as a folder
MOST_ENTRY_BYTES = 1 << 30  # unpacked, one entry
CHUNK = 1 << 20  # bytes inflated at a time
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # the library inflates the others without a limit
ENCRYPTED = 0x1 | 0x40  # bits of the flags of an entry
DROPPINGS = ("__MACOSX", ".DS_Store", "Thumbs.db", ".git")

Reader = Callable[[], bytes]


def zip_entries(stream: io.BytesIO, label: str) -> tuple[dict[str, Reader], dict[str, str], set[str]]:
    """Files, odd entries and folders of a zip file.

    Parameters
    ----------
    stream : BytesIO
    label : str
        Name of the zip file, for messages.

    Returns
    -------
    readers : dict of str to callable
        Name -> function that returns the bytes, or raises InvalidFileError naming the entry.
    odd : dict of str to str
        Name -> why it is no file, for links and the like.
    places : set of str
        Folders that have an entry of their own.

    Raises
    ------
    InvalidFileError (``invalid-file``)
        Not a zip file, or entries that are unsafe, repeated, encrypted, damaged, too large or compressed in a
        way that is not read; every one is named.
    """
    try:
        archive = zipfile.ZipFile(stream)
    except Exception as error:  # the library lets a dozen kinds through where the bytes are damaged
        raise InvalidFileError(f"{label} is neither a folder nor a zip file") from error
    faults = Faults(label)
    said, listed = _number_of_entries(stream.getbuffer()), len(archive.infolist())
    if said not in (listed, listed & 0xFFFF):  # some programs write the number in 16 bits, however large it is
        faults.add(f"is damaged: it says that it has {said} entries and lists {listed}", "unreadable", value=listed)
    entries: dict[str, zipfile.ZipInfo] = {}
    odd: dict[str, str] = {}
    places: set[str] = set()
    size = 0
    for info in archive.infolist():
        given = _entry_name(info)
        name = "/".join(part for part in given.split("/") if part not in ("", "."))
        if fault := _fault(archive, info, given, name, name in entries or name in odd):
            faults.extend([fault])
        elif hidden(name):
            continue
        elif info.is_dir():
            places.add(name)
        elif reason := _oddity(info):
            odd[name] = reason
        else:
            size += info.file_size
            entries[name] = info
    if size > MOST_BYTES:
        faults.add(f"unpacks to {size} bytes; at most {MOST_BYTES} are read", "too-large", value=size)
    faults.raise_if_any()
    counted = _Counted(archive)
    return {name: counted.reader(name, entries[name]) for name in sorted(entries)}, odd, places


def _number_of_entries(data: memoryview) -> int:
    """How many entries a zip file says it has; damage can make one swallow the next, which the library overlooks."""
    tail = bytes(data[-(22 + 0xFFFF) :])  # the record at the end and the longest comment behind it
    at = tail.rfind(b"PK\5\6")
    said = int.from_bytes(tail[at + 10 : at + 12], "little")
    large = tail.rfind(b"PK\6\6", 0, at)
    return int.from_bytes(tail[large + 32 : large + 40], "little") if said == 0xFFFF and large >= 0 else said


def _fault(archive: zipfile.ZipFile, info: zipfile.ZipInfo, given: str, name: str, taken: bool) -> Issue | None:
    """What is wrong with an entry, None if nothing."""
    if given.startswith("/") or "\\" in given or ".." in name.split("/") or re.match(r"[A-Za-z]:", given):
        return Issue(f"entry {given!r} points outside the zip file", "unsafe-name", value=given, source=given)
    if hidden(name) and not info.is_dir():
        return None
    if taken:
        return Issue(f"entry {name!r} is there twice", "repeated-entry", value=name, source=name)
    if info.flag_bits & ENCRYPTED:
        return Issue(f"entry {name!r} is encrypted", "encrypted", value=name, source=name)
    if info.compress_type not in METHODS:
        reason = "is compressed in a way that is not read; pack it as stored or deflated, which every program can"
        return Issue(reason, "unsupported-compression", value=info.compress_type, source=name)
    if info.file_size > MOST_ENTRY_BYTES:
        reason = f"unpacks to {info.file_size} bytes; at most {MOST_ENTRY_BYTES} are read"
        return Issue(reason, "too-large", value=info.file_size, source=name)
    try:
        # Compares the directory at the end with the entry itself: a damaged name would make the file a stranger.
        archive.open(info).close()
    except Exception as error:
        return _damaged(name, error)
    return None


def _damaged(name: str, error: Exception) -> Issue:
    return Issue(f"cannot be read: {printable(str(error)) or type(error).__name__}", "unreadable", source=name)


def _oddity(info: zipfile.ZipInfo) -> str | None:
    """Why an entry is no file, None if it is one."""
    kind = stat.S_IFMT(info.external_attr >> 16)
    if kind in (0, stat.S_IFREG):
        return None
    return "is a link, and those inside zip files lead nowhere" if kind == stat.S_IFLNK else "is no file but a device"


def _entry_name(info: zipfile.ZipInfo) -> str:
    """Entry name; tools that write UTF-8 without saying so are read as what they meant."""
    if info.flag_bits & 0x800:
        return info.filename
    try:
        return info.filename.encode("cp437").decode("utf-8")
    except UnicodeError:
        return info.filename


class _Counted:
    """Reads entries piece by piece and counts what they really inflate to; headers may lie."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self.archive = archive
        self.sizes: dict[str, int] = {}
        self.total = 0

    def reader(self, name: str, info: zipfile.ZipInfo) -> Reader:
        """Function that returns the bytes of an entry."""
        return lambda: self.read(name, info)

    def read(self, name: str, info: zipfile.ZipInfo) -> bytes:
        """Bytes of an entry, or InvalidFileError."""
        self.total -= self.sizes.pop(name, 0)  # read again, it counts once
        room = min(MOST_ENTRY_BYTES, MOST_BYTES - self.total)
        pieces: list[bytes] = []
        size = 0
        try:
            with self.archive.open(info) as stream:
                while size <= room and (piece := stream.read(CHUNK)):
                    size += len(piece)
                    pieces.append(piece)
        except Exception as error:
            raise InvalidFileError(issues=[_damaged(name, error)]) from error
        if size > room:
            reason = f"unpacks to more than is read: {MOST_ENTRY_BYTES} bytes a file, {MOST_BYTES} in all"
            raise InvalidFileError(issues=[Issue(reason, "too-large", value=size, source=name)])
        if size != info.file_size:
            reason = f"holds {size} bytes where its header says {info.file_size}"
            raise InvalidFileError(issues=[Issue(f"cannot be read: {reason}", "unreadable", source=name)])
        self.sizes[name] = size
        self.total += size
        return b"".join(pieces)


def hidden(name: str) -> bool:
    """Whether a name is a dropping of some program, which is nobody's data; ``._x`` are those of the Mac."""
    return any(part in DROPPINGS or part.startswith("._") for part in PurePosixPath(name).parts)
