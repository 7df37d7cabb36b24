"""A folder or a zip file as named bytes. Zip files are read in memory and never unpacked to disk."""

from __future__ import annotations

import io
import os
import re
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from matching.errors import InvalidFileError, Issue
from matching.formats.faults import Faults

__all__ = ["Container", "open_container", "write_folder", "zip_files"]

MOST_BYTES = 4 << 30  # unpacked size of a zip file; a larger venue comes as a folder
DEPTH = 2  # folders inside folders that are looked into; a home directory is not walked to its end
EPOCH = (1980, 1, 1, 0, 0, 0)  # the first date a zip entry can carry; equal content gives equal bytes


@dataclass(frozen=True, eq=False)
class Container:
    """Files by name.

    Attributes
    ----------
    label : str
        Path or name, for messages.
    readers : mapping of str to callable
        Name with ``/`` between folders -> function that returns the bytes. In name order.
    """

    label: str
    readers: Mapping[str, Callable[[], bytes]]

    def __contains__(self, name: object) -> bool:
        return name in self.readers

    def names(self, under: str = "", ending: str = "") -> list[str]:
        """Names below a folder (``"scores/"``) with an ending, in order."""
        return [name for name in self.readers if name.startswith(under) and name.endswith(ending)]

    def read(self, name: str) -> bytes:
        """Bytes of one file; raises InvalidFileError where they cannot be read."""
        try:
            return self.readers[name]()
        except (OSError, zipfile.BadZipFile, RuntimeError, NotImplementedError, EOFError) as error:
            raise InvalidFileError(issues=[Issue(f"cannot be read: {error}", "unreadable", source=name)]) from error

    def within(self, folder: str) -> Container:
        """The files below a folder, named from there."""
        cut = len(folder)
        inside = {name[cut:]: reader for name, reader in self.readers.items() if name.startswith(folder)}
        return Container(f"{self.label}/{folder.rstrip('/')}", inside)

    def folders(self) -> list[str]:
        """Top-level folders, each with a trailing ``/``."""
        return sorted({name.split("/", 1)[0] + "/" for name in self.readers if "/" in name})


def open_container(source: str | Path | bytes | Container, name: str = "upload.zip") -> Container:
    """Open a folder, a zip file, or the bytes of a zip file.

    A zip file that holds a single folder and nothing beside it is read from inside that folder.

    Raises
    ------
    InvalidFileError (``invalid-file``)
        No such path, not a zip file, or a zip file with unsafe, repeated or encrypted entries.
    """
    if isinstance(source, Container):
        return source
    if isinstance(source, bytes):
        return _open_zip(io.BytesIO(source), name)
    path = Path(source)
    try:
        if path.is_dir():
            return _open_folder(path)
        if path.is_file():
            return _open_zip(io.BytesIO(path.read_bytes()), path.name)
    except OSError as error:
        raise InvalidFileError(f"{path} cannot be read: {error.strerror or error}") from error
    raise InvalidFileError(f"there is no folder or file at {path}")


def _open_folder(path: Path) -> Container:
    found: dict[str, Path] = {}
    for place, folders, names in os.walk(path, followlinks=True):
        parts = Path(place).relative_to(path).parts
        if len(parts) >= DEPTH:
            folders.clear()
        for name in names:
            file = Path(place, name)
            if file.is_file():
                found[file.relative_to(path).as_posix()] = file
    readers = {name: found[name].read_bytes for name in sorted(found) if not _hidden(name)}
    return Container(str(path), readers)


def _open_zip(stream: io.BytesIO, label: str) -> Container:
    try:
        archive = zipfile.ZipFile(stream)
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError, EOFError) as error:
        raise InvalidFileError(f"{label} is neither a folder nor a zip file") from error
    faults = Faults(label)
    entries: dict[str, zipfile.ZipInfo] = {}
    size = 0
    for info in archive.infolist():
        name = _entry_name(info)
        parts = name.split("/")
        if name.startswith("/") or "\\" in name or ".." in parts or re.match(r"[A-Za-z]:", name):
            faults.add(f"entry {name!r} points outside the zip file", "unsafe-name", value=name)
        elif info.is_dir() or _hidden(name):
            continue
        elif name in entries:
            faults.add(f"entry {name!r} is there twice", "repeated-entry", value=name)
        elif info.flag_bits & 0x1:
            faults.add(f"entry {name!r} is encrypted", "encrypted", value=name)
        else:
            size += info.file_size
            entries[name] = info
    if size > MOST_BYTES:
        faults.add(f"unpacks to {size} bytes; at most {MOST_BYTES} are read", "too-large", value=size)
    faults.raise_if_any()
    readers = {name: _entry_reader(archive, entries[name]) for name in sorted(entries)}
    container = Container(label, readers)
    folders = container.folders()
    # "archives/" or "scores/" alone is content, not a wrapper around it.
    if len(folders) == 1 and all("/" in name for name in entries) and any(name.count("/") == 1 for name in entries):
        inner = container.within(folders[0])
        if folders[0] not in ("archives/", "submissions/", "scores/", "bids/"):
            return Container(label, inner.readers)
    return container


def _entry_reader(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Callable[[], bytes]:
    return lambda: archive.read(info)


def _entry_name(info: zipfile.ZipInfo) -> str:
    """Entry name; tools that write UTF-8 without saying so are read as what they meant."""
    if info.flag_bits & 0x800:
        return info.filename
    try:
        return info.filename.encode("cp437").decode("utf-8")
    except UnicodeError:
        return info.filename


def _hidden(name: str) -> bool:
    """Droppings of file managers, which are nobody's data."""
    return any(part == "__MACOSX" or part in (".DS_Store", "Thumbs.db", ".git") for part in PurePosixPath(name).parts)


def zip_files(files: Mapping[str, bytes]) -> bytes:
    """A zip file with the given entries; equal entries give equal bytes."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(files):
            info = zipfile.ZipInfo(name, EPOCH)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = 0o644 << 16
            archive.writestr(info, files[name])
    return stream.getvalue()


def write_folder(files: Mapping[str, bytes], path: str | Path) -> None:
    """Write files below a folder, which is made where it is missing; other files there are left alone."""
    for name, data in files.items():
        target = Path(path) / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
