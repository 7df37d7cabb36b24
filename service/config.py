"""Settings: the only reader of the environment."""

from __future__ import annotations

import ipaddress
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypedDict
from urllib.parse import quote, urlsplit, urlunsplit

from matching.errors import Issue
from service.errors import SettingsError

__all__ = ["SETTINGS_HELP", "Settings", "resource_settings"]

SETTINGS_HELP: Mapping[str, str] = {
    "REVMATCH_DATABASE_URL": "SQLAlchemy URL of the database, SQLite or PostgreSQL. Default sqlite:///revmatch.db",
    "REVMATCH_DATABASE_PASSWORD_FILE": "File whose first line is the password for REVMATCH_DATABASE_URL, "
    "which then holds a user but no password. Default: none",
    "REVMATCH_DATA_DIR": "Folder in which a relative SQLite file lies. Default: the current folder",
    "REVMATCH_HOST": "Address to listen on. Anything but a loopback address needs a token. Default 127.0.0.1",
    "REVMATCH_PORT": "TCP port to listen on, 0 to 65535, 0 for any free one. Default 8300",
    "REVMATCH_TOKEN": "Bearer token every request to /v1 must carry. Default: none",
    "REVMATCH_TOKEN_FILE": "File whose first line is the token; used when REVMATCH_TOKEN is not set. Default: none",
    "REVMATCH_SCHEDULER": "Address of a Dask scheduler, as tcp://scheduler:8786. Default: a local worker process",
    "REVMATCH_MAX_BODY_BYTES": "Largest request body in bytes, at least 1. Default 134217728 (128 MiB)",
    "REVMATCH_PAGE_LIMIT": "Most records on one page, at least 1. Default 1000",
    "REVMATCH_PLAN_TIME_LIMIT": "Seconds of wall time after which a plan is stopped, above 0. Default 3600",
    "REVMATCH_ENCODER_MODEL": "Folder of a sentence encoder for the scorers `encoder` and `hybrid`. "
    "Default: the weights that come with `revmatch[encoder]`",
    "REVMATCH_ENCODER_CACHE": "Folder in which vectors of texts are kept between plans; made if missing. "
    "Default: they are not kept",
    "REVMATCH_MEMORY_LIMIT": "Bytes one plan may take; one that may need more is refused before it begins. "
    "Default: what the machine or the container has free then",
}
"""Environment variable -> what it does and its default; the README's table is checked against it."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How one process of the service runs.

    Attributes
    ----------
    database_url : str
        REVMATCH_DATABASE_URL. SQLAlchemy URL, SQLite file or PostgreSQL. The file of a relative SQLite URL lies in
        `data_dir`. The first line of the file named by REVMATCH_DATABASE_PASSWORD_FILE is put into it as the password,
        so that a container keeps it in a secret file. Default ``"sqlite:///revmatch.db"``.
    host : str
        REVMATCH_HOST. Address to listen on. Default ``"127.0.0.1"``.
    port : int
        REVMATCH_PORT. [0, 65535]; 0 takes any free one. Default 8300.
    token : str or None
        REVMATCH_TOKEN, or the first line of the file named by REVMATCH_TOKEN_FILE. Bearer token of the API.
        Default None: no token, loopback only.
    scheduler : str or None
        REVMATCH_SCHEDULER. Address of a Dask scheduler. Default None: a local cluster of one worker process.
    max_body_bytes : int
        REVMATCH_MAX_BODY_BYTES. Largest request body, bytes, [1, inf). Default 128 MiB.
    page_limit : int
        REVMATCH_PAGE_LIMIT. Most records on a page, [1, inf). Default 1000.
    plan_time_limit : float
        REVMATCH_PLAN_TIME_LIMIT. Seconds of wall time a plan may take, (0, inf). Default 3600.
    data_dir : Path
        REVMATCH_DATA_DIR. Folder of a relative SQLite file. Default: the current folder.
    encoder_model, encoder_cache : Path or None
        REVMATCH_ENCODER_MODEL and REVMATCH_ENCODER_CACHE. Folders of a sentence encoder and of its vectors, on the
        machine that runs the plans. Default None: the weights of the extra, and no cache.
    memory_limit : int or None
        REVMATCH_MEMORY_LIMIT. Bytes a plan may take, at least 0. Default None: what there is.
    """

    # repr is off for what may hold a secret: settings end up in logs and tracebacks
    database_url: str = field(default="sqlite:///revmatch.db", repr=False)
    host: str = "127.0.0.1"
    port: int = 8300
    token: str | None = field(default=None, repr=False)
    scheduler: str | None = None
    max_body_bytes: int = 128 * 1024 * 1024
    page_limit: int = 1000
    plan_time_limit: float = 3600.0
    data_dir: Path = Path(".")
    encoder_model: Path | None = None
    encoder_cache: Path | None = None
    memory_limit: int | None = None

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> Settings:
        """Settings from environment variables; a variable that is unset or blank leaves the default.

        Raises
        ------
        SettingsError
            A number is not a number, or the token file cannot be read; every bad variable is listed.
        """
        source = os.environ if environ is None else environ
        issues: list[Issue] = []
        found: dict[str, object] = {}

        def text(variable: str) -> str | None:
            return source.get(variable, "").strip() or None

        for variable, name in (
            ("REVMATCH_DATABASE_URL", "database_url"), ("REVMATCH_HOST", "host"), ("REVMATCH_SCHEDULER", "scheduler"),
        ):  # fmt: skip
            if value := text(variable):
                found[name] = value
        if value := text("REVMATCH_DATA_DIR"):
            found["data_dir"] = Path(value)
        try:
            found.update(resource_settings(source))
        except SettingsError as error:
            issues += error.issues
        for variable, name, kind in (
            ("REVMATCH_PORT", "port", int), ("REVMATCH_MAX_BODY_BYTES", "max_body_bytes", int),
            ("REVMATCH_PAGE_LIMIT", "page_limit", int), ("REVMATCH_PLAN_TIME_LIMIT", "plan_time_limit", float),
        ):  # fmt: skip
            if value := text(variable):
                try:
                    found[name] = kind(value)
                except ValueError:
                    wanted = "a whole number" if kind is int else "a number"
                    issues.append(Issue(f"{variable} must be {wanted}", "not-a-number", variable, value=value))
        found["token"] = text("REVMATCH_TOKEN")
        if found["token"] is None and (path := text("REVMATCH_TOKEN_FILE")):
            found["token"] = _secret(path, "REVMATCH_TOKEN_FILE", "token", issues)
        if path := text("REVMATCH_DATABASE_PASSWORD_FILE"):
            password = _secret(path, "REVMATCH_DATABASE_PASSWORD_FILE", "password", issues)
            if password is not None:
                given = str(found.get("database_url", ""))
                found["database_url"] = _with_password(given, password, issues)
        if issues:
            raise SettingsError(issues=issues)
        return cls(**found)  # type: ignore[arg-type]

    @property
    def is_loopback(self) -> bool:
        """Whether `host` can be reached from this machine only."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host.strip("[]")).is_loopback
        except ValueError:
            return False

    def check(self) -> None:
        """Refuse settings that cannot work or are not safe.

        Raises
        ------
        SettingsError
            A number out of range, or a host beyond loopback without a token; every fault is listed.
        """
        issues: list[Issue] = []

        def fault(variable: str, reason: str, value: object) -> None:
            issues.append(Issue(f"{variable} {reason}", "out-of-range", variable, value=value))

        if not 0 <= self.port <= 65535:
            fault("REVMATCH_PORT", "must lie between 0 and 65535", self.port)
        if self.max_body_bytes < 1:
            fault("REVMATCH_MAX_BODY_BYTES", "must be at least 1", self.max_body_bytes)
        if self.page_limit < 1:
            fault("REVMATCH_PAGE_LIMIT", "must be at least 1", self.page_limit)
        if not (self.plan_time_limit > 0 and math.isfinite(self.plan_time_limit)):
            fault("REVMATCH_PLAN_TIME_LIMIT", "must be a finite number above 0", self.plan_time_limit)
        if not self.is_loopback and not self.token:
            issues.append(
                Issue(
                    f"listening on {self.host} lets others reach every profile; set REVMATCH_TOKEN or "
                    "REVMATCH_TOKEN_FILE, or set REVMATCH_HOST to 127.0.0.1",
                    "token-required",
                    "REVMATCH_TOKEN",
                )
            )
        if issues:
            raise SettingsError(issues=issues)


class ResourceSettings(TypedDict, total=False):
    """Arguments of `matching.Resources`."""

    encoder_model: Path
    encoder_cache: Path
    memory_limit: int


def resource_settings(environ: Mapping[str, str] | None = None) -> ResourceSettings:
    """`Settings.encoder_model`, `encoder_cache` and `memory_limit` as far as they are set, by these names.

    Commands and workers read them alone: a setting of the server that is wrong does not concern them.

    Raises
    ------
    SettingsError
        The limit is not a whole number of at least 0.
    """
    source = os.environ if environ is None else environ
    found: ResourceSettings = {}
    if value := source.get("REVMATCH_ENCODER_MODEL", "").strip():
        found["encoder_model"] = Path(value)
    if value := source.get("REVMATCH_ENCODER_CACHE", "").strip():
        found["encoder_cache"] = Path(value)
    if value := source.get("REVMATCH_MEMORY_LIMIT", "").strip():
        if not value.isdecimal():
            reason = "REVMATCH_MEMORY_LIMIT must be a whole number of bytes, at least 0"
            raise SettingsError(issues=[Issue(reason, "not-a-number", "REVMATCH_MEMORY_LIMIT", value=value)])
        found["memory_limit"] = int(value)
    return found


def _secret(path: str, variable: str, what: str, issues: list[Issue]) -> str | None:
    """First line of a secret file; an empty one is a fault: taking it as "none" would open what it is to protect."""
    try:
        secret = Path(path).read_text(encoding="utf-8").partition("\n")[0].strip()
    except (OSError, UnicodeDecodeError) as error:
        issues.append(Issue(f"{variable} cannot be read: {error}", "unreadable", variable, value=path))
        return None
    if not secret:
        issues.append(Issue(f"{variable} names a file without a {what}", "empty", variable, value=path))
        return None
    return secret


def _with_password(url: str, password: str, issues: list[Issue]) -> str:
    """`url` with the password behind its user; any character may be in a password, so it is percent-encoded."""
    variable = "REVMATCH_DATABASE_PASSWORD_FILE"
    parts = urlsplit(url)
    user, separator, address = parts.netloc.rpartition("@")
    if not user or not separator:
        issues.append(Issue(f"{variable} needs a user in REVMATCH_DATABASE_URL to belong to", "no-user", variable))
        return url
    if ":" in user:
        issues.append(
            Issue(f"REVMATCH_DATABASE_URL holds a password; leave it out or unset {variable}", "twice", variable)
        )
        return url
    return urlunsplit(parts._replace(netloc=f"{user}:{quote(password, safe='')}@{address}"))
