"""Our own bundle: reading judges everything at once, and what is written reads back equal."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matching.errors import InvalidFileError, InvalidVenueError
from matching.formats.bundle import bundle_files, read_bundle, write_bundle, write_bundle_zip
from matching.formats.container import zip_files
from matching.profiles.reviewer import Publication, Reviewer
from matching.profiles.submission import Author, Submission
from matching.profiles.venue import Bid, DeclaredConflict, ImportedScores, Lock, Venue

PAPERS = '{"id": "p1", "title": "T"}\n{"id": "p2", "title": "U", "demand": 2}\n'
REVIEWERS = (
    '{"id": "r1", "emails": ["R1@X.example"], "aliases": ["old-r1"], "load_max": 3}\n'
    '{"id": "r2", "emails": ["r2@x.example"]}\n'
)


def read(**files: str) -> Venue:
    """A venue from files named without their endings: ``bids`` is bids.csv, ``papers`` papers.jsonl."""
    return read_bundle(packed(**files))[0]


def packed(**files: str) -> bytes:
    endings = {"papers": "jsonl", "reviewers": "jsonl", "publications": "jsonl", "manifest": "json", "rules": "json"}
    named = {"papers": PAPERS, "reviewers": REVIEWERS} | files
    return zip_files({f"{name}.{endings.get(name, 'csv')}": text.encode() for name, text in named.items()})


def faults(**files: str) -> list[tuple[str | None, int | None, str]]:
    with pytest.raises(InvalidFileError) as error:
        read(**files)
    return [(issue.source, issue.row, issue.code) for issue in error.value.issues]


def test_the_smallest_bundle_is_two_files() -> None:
    """The manifest and every other file are optional."""
    venue = read()
    assert [item.id for item in venue.reviewers] == ["r1", "r2"]
    assert (venue.demand, venue.load_max, venue.load_min) == (Venue().demand, Venue().load_max, Venue().load_min)


def test_both_lists_must_be_there() -> None:
    """A bundle without reviewers is a mistake, not an empty pool."""
    with pytest.raises(InvalidFileError, match="missing"):
        read_bundle(zip_files({"papers.jsonl": PAPERS.encode()}))


def test_side_files_join_people_and_papers() -> None:
    """By id, alias or address."""
    venue = read(
        publications='{"reviewer": "old-r1", "id": "w1", "title": "A"}\n{"reviewer": "R2@x.example", "title": "B"}\n',
        loads="reviewer,load_max,load_min\nr1@x.example,3,\nr2,,1\n",
        demands="paper,demand\np1,1\np2,2\n",
        locks="paper,reviewer\np1,r1\n",
        manifest='{"settings": {"demand": 4, "load_max": 5, "free_mail": ["m.example"], "domain_aliases": {"a": "b"}}}',
    )
    assert [[item.title for item in person.publications] for person in venue.reviewers] == [["A"], ["B"]]
    assert [(person.load_max, person.load_min) for person in venue.reviewers] == [(3, None), (None, 1)]
    assert [paper.demand for paper in venue.submissions] == [1, 2]
    assert venue.locks == (Lock("p1", "r1"),)
    assert (venue.demand, venue.load_max, venue.free_mail, dict(venue.domain_aliases)) == (
        4,
        5,
        ("m.example",),
        {"a": "b"},
    )


def test_b08_a_bid_by_nobody_is_told_with_its_line_and_others_by_alias_count() -> None:
    """Rows that resolve to nobody never vanish without notice."""
    venue, notices = read_bundle(packed(bids="paper,reviewer,bid\np1,old-r1,yes\np1,ghost,yes\n"))
    assert len(venue.bids) == 2
    (notice,) = notices
    assert notice.code == "unresolved-line"
    assert notice.data["line"] == 3 and "ghost" in notice.message


def test_b11_faults_of_all_files_are_listed_together() -> None:
    """Conflicts that name nobody are faults, never dropped; nothing is read in part."""
    found = faults(
        reviewers=REVIEWERS + '{"name": "no id"}\n',
        conflicts="paper,reviewer\np1,r99\np99, R1@X.EXAMPLE \n",
        papers=PAPERS + "{broken\n",
    )
    assert found == [
        ("conflicts.csv", 2, "unknown-id"),
        ("conflicts.csv", 3, "unknown-id"),
        ("papers.jsonl", 3, "not-json"),
        ("reviewers.jsonl", 3, "missing-id"),
    ]


def test_a_reference_to_a_record_at_fault_is_no_second_fault() -> None:
    """One mistake, one message."""
    found = faults(reviewers='{"id": "r1", "load_max": 2.5}\n', conflicts="paper,reviewer\np1,r1\n")
    assert found == [("reviewers.jsonl", 1, "not-a-count")]


@pytest.mark.parametrize("name", ["papers", "reviewers"])
def test_a_list_at_fault_is_one_fault_and_not_one_for_each_reference(name: str) -> None:
    """Thousands of references to nobody would bury the one message that explains them."""
    rows = {
        "conflicts": "paper,reviewer\np1,r1\n",
        "loads": "reviewer,load_max\nr1,1\n",
        "locks": "paper,reviewer\np2,r2\n",
    }
    publications = '{"reviewer": "r1", "title": "A"}\n'
    assert faults(**rows, publications=publications, **{name: "{"}) == [(f"{name}.jsonl", 1, "not-json")]


def test_b09_one_id_twice_names_both_lines() -> None:
    """The second does not overwrite the first."""
    with pytest.raises(InvalidFileError, match="also on line 1") as error:
        read(reviewers=REVIEWERS + '{"id": " r1", "load_max": 1}\n')
    assert [(issue.row, issue.code) for issue in error.value.issues] == [(3, "duplicate-id")]


def test_b13_loads_that_contradict_the_reviewers_name_both() -> None:
    """The looser limit never wins by accident."""
    with pytest.raises(InvalidFileError, match=r"reviewers\.jsonl, line 1") as error:
        read(loads="reviewer,load_max\nold-r1,5\n")
    assert (error.value.issues[0].source, error.value.issues[0].row) == ("loads.csv", 2)
    assert faults(loads="reviewer,load_max\nr1,3\nr1@x.example,5\n")[0] == ("loads.csv", 3, "contradiction")
    assert faults(demands="paper,demand\np2,1\n") == [("demands.csv", 2, "contradiction")]


def test_an_address_of_two_people_is_ambiguous_where_one_is_needed() -> None:
    """Whose load it is cannot be told."""
    people = '{"id": "r1", "emails": ["a@x.example"]}\n{"id": "r2", "emails": ["A@x.example"]}\n'
    assert faults(reviewers=people, loads="reviewer,load_max\na@x.example,1\n") == [("loads.csv", 2, "ambiguous-id")]


def test_b44_swapped_columns_in_a_bundle_are_noticed() -> None:
    """The ids are known there."""
    assert faults(bids="paper,reviewer,bid\nr1,p1,yes\n") == [("bids.csv", 2, "columns-swapped")]


@pytest.mark.parametrize(
    ("rules", "codes"),
    [
        ('[{"kind": "max_per_institution"}]', {("rules[0].rule", "unknown-rule")}),
        ('{"a": 1}', {("rules", "wrong-type")}),
        ("1", {("rules", "wrong-type")}),
        ('[{"rule": "bar"}]', {("rules[0]", "missing")}),
        ('[{"rule": "same"}, {"rule": "same", "attribute": 3}]',
         {("rules[0].attribute", "missing"), ("rules[1].attribute", "wrong-type")}),
    ],
)  # fmt: skip
def test_rules_of_a_wrong_form_are_refused_and_never_ignored(rules: str, codes: set[tuple[str, str]]) -> None:
    """A plan that breaks a rule nobody read would look lawful."""
    with pytest.raises(InvalidFileError) as error:
        read(rules=rules)
    assert {(issue.field, issue.code) for issue in error.value.issues} == codes
    assert {issue.source for issue in error.value.issues} == {"rules.json"}


def test_rules_come_back_as_they_were_written() -> None:
    """What is written holds in the next run too."""
    rules = [{"rule": "reviewers_per_submission", "each": "country", "groups": {"EU": ["DE", "FR"]}, "at_most": 2}]
    venue = replace(read(), rules=tuple(rules))
    files = bundle_files(venue)
    assert json.loads(files["rules.json"]) == rules
    again, _ = read_bundle(zip_files(files))
    assert again.rules == venue.rules and bundle_files(again) == files


@pytest.mark.parametrize("rules", ["", "[]", "{}", "null"])
def test_an_empty_rules_file_says_there_are_none(rules: str) -> None:
    """Exports write it all the same."""
    assert len(read(rules=rules).reviewers) == 2


def test_b43_settings_are_judged_strictly() -> None:
    """Like every other number."""
    manifest = '{"settings": {"demand": 2.5, "load_max": true, "loadmin": 1}, "schema": "revmatch-bundle/9"}'
    with pytest.raises(InvalidFileError) as error:
        read(manifest=manifest)
    assert {issue.field for issue in error.value.issues} == {
        "schema", "settings.demand", "settings.load_max", "settings.loadmin",
    }  # fmt: skip


def test_a_changed_file_is_named() -> None:
    """Its sum no longer matches the manifest."""
    files = bundle_files(read())
    files["bids.csv"] += b"p1,r1,high\n"
    with pytest.raises(InvalidFileError) as error:
        read_bundle(zip_files(files))
    assert [(issue.source, issue.code) for issue in error.value.issues] == [("bids.csv", "checksum")]
    del files["bids.csv"]
    with pytest.raises(InvalidFileError, match=r"bids\.csv: is named in manifest\.json but missing"):
        read_bundle(zip_files(files))


def test_record_numbers_of_a_manifest_are_checked() -> None:
    """Also where it gives no sums."""
    manifest = {"files": {"papers.jsonl": {"records": 3}}}
    assert faults(manifest=json.dumps(manifest)) == [("papers.jsonl", None, "record-count")]


def test_files_that_are_no_part_of_a_bundle_are_told() -> None:
    """Somebody may have meant them to count."""
    notices = read_bundle(packed(remarks="paper,reviewer\n"))[1]
    assert [(notice.code, notice.data["file"]) for notice in notices] == [("ignored-file", "remarks.csv")]


def test_a_table_may_not_take_the_name_of_a_built_in_signal() -> None:
    """Its weight would be ambiguous."""
    files = {"papers.jsonl": PAPERS, "reviewers.jsonl": REVIEWERS, "scores/text.csv": "paper,reviewer,score\n"}
    with pytest.raises(InvalidFileError, match="built-in"):
        read_bundle(zip_files({name: text.encode() for name, text in files.items()}))


def test_folder_zip_and_zip_of_a_folder_read_alike(tmp_path: Path) -> None:
    """However it was handed over."""
    venue = read(conflicts="paper,reviewer,evidence\np1,r1,x\n")
    files = bundle_files(venue)
    write_bundle(venue, tmp_path / "a" / "b")
    (tmp_path / "b.zip").write_bytes(zip_files({f"b/{name}": data for name, data in files.items()}))
    for source in (tmp_path / "a" / "b", str(tmp_path / "b.zip"), write_bundle_zip(venue)):
        assert read_bundle(source)[0] == venue
    assert write_bundle_zip(venue) == write_bundle_zip(read_bundle(tmp_path / "a" / "b")[0])


def test_an_extra_that_is_no_json_is_refused() -> None:
    """Before anything is written."""
    with pytest.raises(InvalidVenueError, match="JSON"):
        bundle_files(Venue(extra={"a": {1, 2}}))
    with pytest.raises(InvalidVenueError, match="JSON"):
        bundle_files(Venue(reviewers=(Reviewer("r", extra={"a": float("nan")}),)))


def test_a_default_beyond_the_limit_of_scores_is_refused() -> None:
    """It is a score like any other."""
    files = {"papers.jsonl": PAPERS, "reviewers.jsonl": REVIEWERS, "scores/s.csv": "paper,reviewer,score\np1,r1,1e9\n"}
    for number in ("1000000001", "-1e10", "1e300"):
        manifest = f'{{"settings": {{"score_defaults": {{"s": {number}}}}}}}'
        with pytest.raises(InvalidFileError) as error:
            read_bundle(
                zip_files({name: text.encode() for name, text in (files | {"manifest.json": manifest}).items()})
            )
        (issue,) = error.value.issues
        assert (issue.source, issue.field, issue.code) == ("manifest.json", "settings.score_defaults.s", "out-of-range")


@pytest.mark.parametrize("text", ['{"id": "r\\ud800"}', '{"id": "r", "extra": [{"\\uDfff": 1}]}'])
def test_half_characters_are_refused_when_read(text: str) -> None:
    """No file could be written with them later."""
    assert faults(reviewers=text + "\n") == [("reviewers.jsonl", 1, "not-unicode")]


def test_half_characters_are_refused_before_a_file_is_written() -> None:
    """Values made in Python were never read from a file."""
    for venue in (
        Venue(bids=(Bid("p", "r\udcff", "high"),)),
        Venue(reviewers=(Reviewer("r\udcff"),)),
        Venue(name="\udcff"),
        Venue(scores=(ImportedScores("s\udcff", (), (), ()),)),
    ):
        with pytest.raises(InvalidVenueError):
            bundle_files(venue)


def test_signals_may_have_names_that_start_with_a_dot() -> None:
    """A file of such a name would be taken for a dropping of some program."""
    scores = tuple(ImportedScores(name, ("p1",), ("r1",), (0.5,)) for name in (".", "..", "._x", ".DS_Store"))
    venue = Venue(reviewers=(Reviewer("r1"),), submissions=(Submission("p1"),), scores=scores)
    again = read_bundle(write_bundle_zip(venue))[0]
    assert [item.name for item in again.scores] == sorted(item.name for item in scores)
    with pytest.raises(InvalidVenueError, match="name"):
        bundle_files(Venue(scores=(ImportedScores("", (), (), ()),)))


text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6)
name = text.map(str.strip).filter(bool)
number = st.none() | st.integers(0, 5)
extras = st.dictionaries(
    text.map("x".__add__), st.none() | st.integers() | text | st.lists(text, max_size=2), max_size=2
)
texts = st.lists(text, max_size=2)
weights = st.floats(0, 9)
authors = st.builds(Author, name, text.map(str.strip), text, st.none() | name)


@st.composite
def venues(draw: st.DrawFn) -> Venue:
    """Venues whose references resolve, with every field in use, listed as the writer lists them."""
    people = [
        f"r{suffix}" for suffix in sorted(draw(st.sets(st.text("AZ09~.,\"'é", max_size=3), min_size=1, max_size=3)))
    ]
    papers = [f"p{suffix}" for suffix in sorted(draw(st.sets(st.text("ab01,-", max_size=3), min_size=1, max_size=3)))]
    people = list({person.casefold(): person for person in people}.values())
    reviewers = []
    for person in people:
        least, most = sorted([draw(st.integers(0, 5)), draw(st.integers(0, 5))])
        ids = draw(st.lists(name, max_size=2, unique=True))
        year = st.none() | st.integers(1900, 2030)
        publications = st.tuples(*(st.builds(Publication, st.just(item), text, text, year, weights) for item in ids))
        build = st.builds(
            Reviewer,
            id=st.just(person),
            name=text,
            emails=st.just((f"{hashlib.md5(person.encode()).hexdigest()}@X.example",)),
            aliases=st.just((f"old {person}",)),
            role=st.sampled_from(["reviewer", "area_chair", "emergency"]),
            publications=publications,
            keywords=texts,
            areas=texts,
            seniority=st.none() | name,
            country=st.none() | name,
            affiliations=texts,
            load_min=st.sampled_from([None, least]),
            load_max=st.sampled_from([None, most]),
            same_person_as=st.none() | name,
            conflict_domains=st.lists(name, max_size=2),
            active=st.booleans(),
            extra=extras,
        )
        reviewers.append(draw(build))
    submissions = [
        draw(
            st.builds(
                Submission,
                st.just(paper),
                text,
                text,
                st.lists(authors, max_size=2),
                texts,
                texts,
                st.none() | name,
                number,
                st.booleans(),
                extras,
            )
        )
        for paper in papers
    ]
    pairs = sorted((paper, person) for paper in papers for person in people)
    some = st.lists(st.sampled_from(pairs), unique=True).map(sorted)
    labels = st.sampled_from(["very_high", "high", "neutral", "low", "very_low"])
    signals = sorted(draw(st.sets(name.map("s".__add__), max_size=2)), key=str)
    if len({signal.casefold() for signal in signals}) < len(signals):
        signals = signals[:1]
    scores = []
    for signal in signals:
        listed = draw(some)
        values = [draw(st.floats(-1e9, 1e9)) for _ in listed]
        default = draw(st.none() | st.floats(-1, 1))
        scores.append(ImportedScores(signal, [a for a, _ in listed], [b for _, b in listed], values, default))
    return Venue(
        reviewers=reviewers,
        submissions=submissions,
        bids=[Bid(*pair, draw(labels)) for pair in draw(some)],
        conflicts=[DeclaredConflict(*pair, draw(name), draw(text), draw(text.map(str.strip))) for pair in draw(some)],
        scores=scores,
        locks=[Lock(*pair) for pair in draw(some)],
        demand=draw(st.integers(0, 5)),
        load_max=draw(st.integers(0, 5)),
        load_min=draw(st.integers(0, 5)),
        domain_aliases=draw(st.dictionaries(name, name, max_size=2)),
        free_mail=draw(st.lists(name, max_size=2)),
        name=draw(text),
        extra=draw(extras),
    )


def flat(venue: Venue) -> Venue:
    """A venue that compares by value; ImportedScores compare by identity because of their arrays."""
    tables = [
        (item.name, item.submissions, item.reviewers, item.values.tolist(), item.default) for item in venue.scores
    ]
    return Venue(**{field: getattr(venue, field) for field in Venue.__dataclass_fields__} | {"scores": tables})


@settings(deadline=None, max_examples=60)
@given(venues())
def test_b44_bundles_round_trip(venue: Venue) -> None:
    """Reading gives the venue back, value for value, and writing it again the same bytes."""
    files = bundle_files(venue)
    again, notices = read_bundle(zip_files(files))
    assert flat(again) == flat(venue)
    assert bundle_files(again) == files
    assert {notice.code for notice in notices} <= {"unused-field"}
