"""One pass over the files of a bundle that gathers every fault on the way."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar
from urllib.parse import unquote

from matching.errors import InputError, InvalidFileError, Issue
from matching.formats import table
from matching.formats.bundle_join import KnownPeople
from matching.formats.checks import MOST_SCORE
from matching.formats.container import Container
from matching.formats.faults import Faults
from matching.formats.fields import Fields
from matching.formats.json_text import parse_json, read_jsonl
from matching.formats.layout import Layout, judge_names
from matching.formats.records import collect
from matching.notices import Notice
from matching.profiles.identity import fold_id
from matching.profiles.venue import ImportedScores, Venue
from matching.rules import parse_rules

__all__ = ["SAFE", "SCHEMA", "BundleReader"]

SCHEMA = "revmatch-bundle/1"
SAFE = " !#$&'()+,;=@[]^{}~"  # beside letters, digits and "_.-"; the rest is percent-encoded in file names
RESERVED_SIGNALS = ("text", "areas", "bids")
DEFAULTS = Venue()
Read = TypeVar("Read")


class BundleReader:
    """Files of one venue, the faults found so far, and the number of records in each file.

    Parameters
    ----------
    files : Container
    layout : Layout
        Names that are read; what else is there is judged at once.
    """

    def __init__(self, files: Container, layout: Layout) -> None:
        self.files = files
        self.layout = layout
        self.faults = Faults(files.label)
        self.by_file: dict[str, Faults] = {}
        self.found: dict[str, int] = {}
        # Names of records at fault: a reference to one of them is not a second fault.
        self.broken: dict[str, set[str]] = {"papers.jsonl": set(), "reviewers.jsonl": set()}
        judged = judge_names(files, layout)
        self.faults.extend(judged.issues)
        self.notices: list[Notice] = list(judged.notices)
        self.meant = judged.meant

    def lacks(self, name: str) -> bool:
        """Whether a file is missing, and nothing is there that was meant to be it, which is a fault already."""
        return name not in self.files and name not in self.meant

    @property
    def faulty(self) -> bool:
        """Whether any fault was found so far."""
        return bool(self.faults) or any(map(bool, self.by_file.values()))

    def of(self, name: str) -> Faults:
        """Faults of one file."""
        return self.by_file.setdefault(name, Faults(name))

    def trying(self, action: Callable[[], Read]) -> Read | None:
        """The value of an action, or None after noting the faults it raised."""
        try:
            return action()
        except InputError as error:
            self.faults.extend(error.issues or [Issue(error.detail, error.code, source=self.files.label)])
            return None

    def raise_if_any(self) -> None:
        for faults in self.by_file.values():
            self.faults.extend(faults.issues)
            self.faults.dropped += faults.dropped
        self.faults.raise_if_any()

    def all_notices(self) -> tuple[Notice, ...]:
        return (*self.notices, *(notice for faults in self.by_file.values() for notice in faults.notices()))

    def lines(self, name: str) -> list[tuple[int, dict[str, Any]]]:
        """Objects of a file of JSON lines, with line numbers; none where there is no file."""
        if name not in self.files:
            return []
        found = self.trying(lambda: list(read_jsonl(self.files.read(name), self.of(name)))) or []
        self.found[name] = len(found)
        return found

    def records(self, name: str, read: Callable[..., Any]) -> list[tuple[int, Any]]:
        """Line and value of every sound record of a file."""
        lines = self.lines(name)
        found = list(collect(lines, read, self.of(name), "line"))
        sound = {line for line, _ in found}
        for line, record in lines:
            if line not in sound:
                names = [record.get("id"), *_listed(record.get("aliases")), *_listed(record.get("emails"))]
                self.broken[name] |= {text.strip() for text in names if isinstance(text, str)}
        return found

    def delimited(
        self, name: str, read: Callable[..., table.Parsed[Read]], **options: Any
    ) -> table.Parsed[Read] | None:
        """A delimited file, None where there is none or it has faults."""
        if name not in self.files:
            return None
        parsed = self.trying(lambda: read(self.files.read(name), name=name, **options))
        if parsed is not None:
            self.notices += parsed.notices
            self.found[name] = parsed.n_rows
        return parsed

    def scores(self, defaults: Mapping[str, float], sets: Mapping[str, Any]) -> tuple[ImportedScores, ...]:
        """Every table below scores/, by name."""
        found = []
        files: dict[str, str] = {}
        for name in self.layout.inside(self.files, "scores/"):
            signal = unquote(name.removeprefix("scores/").removesuffix(".csv"))
            if signal in RESERVED_SIGNALS:
                self.of(name).add(f"{signal!r} is the name of a built-in signal; rename the file", "reserved-name")
                continue
            if files.setdefault(signal, name) != name:
                self.of(name).add(f"is a second table of {signal!r} beside {files[signal]}", "duplicate-id")
                continue
            parsed = self.delimited(name, table.read_scores, signal=signal, default=defaults.get(signal), **sets)
            if parsed is not None:
                found.append(parsed.records)
        for signal in sorted(defaults):
            if signal not in files:
                self.of("manifest.json").add(
                    f"there is no table {signal!r} below scores/", "unknown-signal", "score_defaults"
                )
        return tuple(sorted(found, key=lambda scores: scores.name))

    def refuse_unknown(self, name: str, parsed: table.Parsed[Any] | None, ids: set[str], known: KnownPeople) -> None:
        """Hard rules that name nobody are faults: dropping one would lose it."""
        for what, value, line in _unknown(parsed, ids, known):
            self.of(name).add(f"there is no {what} {value!r}", "unknown-id", what, line, value)

    def note_unknown(self, name: str, parsed: table.Parsed[Any] | None, ids: set[str], known: KnownPeople) -> None:
        """Wishes that name nobody are told with their lines; they stay in the venue, which tells them again by row."""
        for what, value, line in _unknown(parsed, ids, known):
            text = f"{name}, line {line}: there is no {what} {value!r}; not used"
            data = {"source": name, "field": what, "value": value, "line": line}
            self.notices.append(Notice("unresolved-line", text, data=data))

    def rules(self) -> tuple[Any, ...]:
        """What rules.json holds, judged by form; none where there is no such file or an empty one."""
        name = "rules.json"
        if name not in self.files:
            return ()
        data = self.trying(lambda: self.files.read(name))
        if not data or not data.strip():
            return ()
        value = self.trying(lambda: parse_json(data, self.of(name))) or []
        # an empty object is how some programs say "none"
        self.trying(lambda: parse_rules(value or None, source=name, error=InvalidFileError))
        self.found[name] = len(value) if isinstance(value, list) else 0
        return tuple(value) if isinstance(value, list) else ()

    def manifest(self) -> dict[str, Any]:
        """Settings and file sums; the defaults where there is no manifest."""
        faults = self.of("manifest.json")
        record: Any = {}
        if "manifest.json" in self.files:
            record = self.trying(lambda: parse_json(self.files.read("manifest.json"), faults))
            if record is None and faults:
                record = {}
        fields = Fields.of(record, faults, None) or Fields({}, faults, None)
        schema = fields.optional_text("schema")
        if schema not in (None, SCHEMA):
            fields.fault(
                "schema", f"{schema!r} is not {SCHEMA!r}; another version wrote this bundle", "unknown-schema", schema
            )
        settings = Fields(fields.mapping("settings"), faults, None, "settings.")
        venue = {
            name: _or(settings.count(name), getattr(DEFAULTS, name)) for name in ("demand", "load_max", "load_min")
        }
        aliases = settings.mapping("domain_aliases")
        for domain, target in aliases.items():
            if not isinstance(target, str):
                settings.fault(f"domain_aliases.{domain}", "must be a domain", "not-text", target)
        defaults = Fields(settings.mapping("score_defaults"), faults, None, "settings.score_defaults.")
        extra = dict(fields.mapping("extra"))
        fields.text("generator")
        result = {
            "venue": {
                **venue,
                "domain_aliases": dict(aliases),
                "free_mail": settings.texts("free_mail", trim=True),
                "name": fields.text("name"),
                "extra": extra,
            },
            "files": fields.mapping("files"),
            "score_defaults": {signal: defaults.within(signal, MOST_SCORE) for signal in defaults.record},
        }
        settings.not_kept()
        fields.not_kept()
        self._check_sums(result["files"])
        return result

    def _check_sums(self, sums: Mapping[str, Any]) -> None:
        for name, entry in sums.items():
            if self.lacks(name):
                self.of(name).add("is named in manifest.json but missing", "missing-file")
            if name not in self.files:
                continue
            wanted = entry.get("sha256") if isinstance(entry, Mapping) else None
            if wanted is None:
                continue
            data = self.trying(lambda name=name: self.files.read(name))  # type: ignore[misc]
            if data is not None and hashlib.sha256(data).hexdigest() != str(wanted).lower():
                self.of(name).add("differs from the file that manifest.json describes (sha256)", "checksum")

    def check_counts(self, sums: Mapping[str, Any]) -> None:
        """Record numbers of the manifest against what was read."""
        for name, entry in sums.items():
            wanted = entry.get("records") if isinstance(entry, Mapping) else None
            if wanted is not None and name in self.found and not self.of(name) and wanted != self.found[name]:
                self.of(name).add(f"holds {self.found[name]} records, manifest.json says {wanted}", "record-count")

    def note_unlisted(self, sums: Mapping[str, Any]) -> None:
        """Say which files were read though the manifest does not list them."""
        for name in self.files.readers:
            if sums and name not in sums and self.layout.reads(name) and name != "manifest.json":
                text = f"{name} was read; manifest.json does not list it"
                self.notices.append(Notice("unlisted-file", text, data={"file": name}))


def _or(value: int | None, default: int) -> int:
    return default if value is None else value


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _unknown(parsed: table.Parsed[Any] | None, ids: set[str], known: KnownPeople) -> Iterator[tuple[str, str, int]]:
    """Kind, name and line of every reference to nobody."""
    if parsed is None:
        return
    folded = {fold_id(name) for name in ids}
    for record, line in zip(parsed.records, parsed.lines.tolist()):
        if record.submission not in ids and fold_id(record.submission) not in folded:
            yield "submission", record.submission, line
        if record.reviewer not in known:
            yield "reviewer", record.reviewer, line
