"""A folder or a zip file as named bytes. Zip files are read in memory and never unpacked to disk."""

from __future__ import annotations

import io
import os
import stat
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from matching.errors import InvalidFileError, Issue
from matching.formats import zip_reader
from matching.formats.decode import printable
from matching.formats.zip_reader import hidden, zip_entries

__all__ = ["Container", "open_container", "write_folder", "zip_files"]

DEPTH = 2  # folders inside folders that are looked into; a home directory is not walked to its end
EPOCH = (1980, 1, 1, 0, 0, 0)  # the first date a zip entry can carry; equal content gives equal bytes
CONTENT_FOLDERS = ("archives/", "submissions/", "scores/", "bids/")  # alone in a zip file they wrap nothing


@dataclass(frozen=True, eq=False)
class Container:
    """Files by name, and what else is there.

    Attributes
    ----------
    label : str
        Path or name, for messages.
    readers : mapping of str to callable
        Name with ``/`` between folders -> function that returns the bytes. In name order.
    odd : mapping of str to str
        Name -> why nothing can be read there, in words that follow the name: links to nothing and to folders,
        pipes, devices, names that are not UTF-8, folders too deep to be looked into.
    closed : mapping of str to str
        Folder -> why it could not be looked into.
    places : frozenset of str
        Folders, the empty ones too.
    """

    label: str
    readers: Mapping[str, Callable[[], bytes]]
    odd: Mapping[str, str] = field(default_factory=dict)
    closed: Mapping[str, str] = field(default_factory=dict)
    places: frozenset[str] = frozenset()

    def __contains__(self, name: object) -> bool:
        return name in self.readers

    def names(self, under: str = "", ending: str = "") -> list[str]:
        """Names below a folder (``"scores/"``) with an ending, in order."""
        return [name for name in self.readers if name.startswith(under) and name.endswith(ending)]

    def read(self, name: str) -> bytes:
        """Bytes of one file; raises InvalidFileError where they cannot be read."""
        try:
            return self.readers[name]()
        except OSError as error:
            reason = f"cannot be read: {error.strerror or error}"
            raise InvalidFileError(issues=[Issue(reason, "unreadable", source=name)]) from error

    def within(self, folder: str) -> Container:
        """What lies below a folder (``"a/"``), named from there."""
        cut = len(folder)
        return Container(
            f"{self.label}/{folder.rstrip('/')}",
            {name[cut:]: reader for name, reader in self.readers.items() if name.startswith(folder)},
            {name[cut:]: reason for name, reason in self.odd.items() if name.startswith(folder)},
            {name[cut:]: reason for name, reason in self.closed.items() if name.startswith(folder)},
            frozenset(name[cut:] for name in self.places if name.startswith(folder)) - {""},
        )

    def folders(self) -> list[str]:
        """Top-level folders that hold files, each with a trailing ``/``."""
        return sorted({name.split("/", 1)[0] + "/" for name in self.readers if "/" in name})


def open_container(source: str | Path | bytes | Container, name: str = "upload.zip") -> Container:
    """Open a folder, a zip file, or the bytes of a zip file.

    A zip file that holds a single folder and nothing beside it is read from inside that folder. Links to
    files are followed, links to folders are not.

    Raises
    ------
    InvalidFileError (``invalid-file``)
        No such path, not a zip file, or a zip file with entries at fault; see `zip_entries`.
    """
    if isinstance(source, Container):
        return source
    if isinstance(source, bytes):
        return _open_zip(io.BytesIO(source), printable(name))
    path = Path(source)
    shown = printable(str(path))
    try:
        if path.is_dir():
            return _open_folder(path)
        if path.is_file():
            if (size := path.stat().st_size) > zip_reader.MOST_BYTES:
                raise InvalidFileError(f"{shown} has {size} bytes; at most {zip_reader.MOST_BYTES} are read")
            return _open_zip(io.BytesIO(path.read_bytes()), printable(path.name))
    except OSError as error:
        raise InvalidFileError(f"{shown} cannot be read: {error.strerror or error}") from error
    except ValueError:  # a NUL in the path
        pass
    raise InvalidFileError(f"there is no folder or file at {shown}")


def _open_folder(path: Path) -> Container:
    found: dict[str, Path] = {}
    odd: dict[str, str] = {}
    closed: dict[str, str] = {}
    places: set[str] = set()

    def named(place: str, name: str = "") -> str:
        return Path(place, name).relative_to(path).as_posix()

    def refused(error: OSError) -> None:
        if Path(error.filename) == path:
            raise error
        closed[named(error.filename)] = f"cannot be looked into: {error.strerror or error}"

    for place, folders, names in os.walk(path, onerror=refused):
        deep = len(Path(place).relative_to(path).parts) >= DEPTH
        for folder in tuple(folders):
            name = named(place, folder)
            if not hidden(name) and (reason := _no_folder(Path(place, folder), name, deep)) is None:
                places.add(name)
                continue
            folders.remove(folder)
            if not hidden(name):
                odd[printable(name)] = reason or ""
        for file in names:
            name = named(place, file)
            if hidden(name):
                continue
            if (reason := _no_file(Path(place, file), name)) is None:
                found[name] = Path(place, file)
            else:
                odd[printable(name)] = reason
    readers = {name: found[name].read_bytes for name in sorted(found)}
    return Container(printable(str(path)), readers, dict(sorted(odd.items())), closed, frozenset(places))


def _no_folder(path: Path, name: str, deep: bool) -> str | None:
    """Why a folder is not looked into, None if it is."""
    if name != printable(name):
        return "has a name that is not UTF-8"
    if path.is_symlink():
        return "is a link to a folder, and such links are not followed"
    return f"lies below {DEPTH} folders, and those are not looked into" if deep else None


def _no_file(path: Path, name: str) -> str | None:
    """Why nothing can be read from a path, None if it is a file."""
    if name != printable(name):
        return "has a name that is not UTF-8"
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return "is a link to nothing"
    except OSError as error:
        return f"cannot be read: {error.strerror or error}"
    return None if stat.S_ISREG(mode) else "is no file but a pipe, a socket, a device or a folder"


def _open_zip(stream: io.BytesIO, label: str) -> Container:
    readers, odd, places = zip_entries(stream, label)
    parents = {str(parent) for name in (*readers, *odd) for parent in PurePosixPath(name).parents} - {"."}
    container = Container(label, readers, odd, {}, frozenset(places | parents))
    folders = container.folders()
    alone = len(folders) == 1 and all(name.startswith(folders[0]) for name in (*readers, *odd))
    if alone and folders[0] not in CONTENT_FOLDERS and any(name.count("/") == 1 for name in readers):
        inner = container.within(folders[0])
        return replace(inner, label=label)
    return container


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
