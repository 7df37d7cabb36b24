"""Bytes to text: UTF-8 with or without a mark, any line ends, and a clear word on everything else."""

from __future__ import annotations

import codecs
import re

from matching.errors import InvalidFileError, Issue

__all__ = ["decode", "line_of", "printable", "split_lines"]

# Only these end a line. str.splitlines would also break at U+2028 or U+0085, which are text inside JSON.
LINE_END = re.compile(r"\r\n|\n|\r")


def decode(data: bytes, name: str) -> str:
    """Text of a UTF-8 file, without its byte order mark.

    Parameters
    ----------
    data : bytes
    name : str
        File name for messages.

    Raises
    ------
    InvalidFileError (``invalid-file``)
        Other encodings (issue code ``not-utf8``, row the first bad line) and NUL characters (``nul``).
    """
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise InvalidFileError(issues=[Issue("is UTF-16; save it as UTF-8", "not-utf8", row=1, source=name)])
    if data.startswith(codecs.BOM_UTF8):
        data = data[len(codecs.BOM_UTF8) :]
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        row = line_of(data[: error.start].decode("utf-8"), error.start)
        reason = (
            f"byte 0x{data[error.start]:02X} is not UTF-8; save the file as UTF-8 (CSV UTF-8 in a spreadsheet program)"
        )
        raise InvalidFileError(issues=[Issue(reason, "not-utf8", row=row, source=name)]) from error
    at = text.find("\0")
    if at >= 0:
        raise InvalidFileError(issues=[Issue("holds a NUL character", "nul", row=line_of(text, at), source=name)])
    return text


def line_of(text: str, position: int) -> int:
    """Number of the line that holds a position, counted from 1."""
    return len(LINE_END.findall(text, 0, position)) + 1


def printable(text: str) -> str:
    """A text that any file can hold: bytes of a file name that are not UTF-8 are spelled out."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def split_lines(text: str) -> list[str]:
    """Lines without their ends."""
    return LINE_END.split(text)
