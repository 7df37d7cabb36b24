"""Folding and comparing addresses, domains, institutions and names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matching.profiles.identity import (
    FREE_MAIL,
    Institutions,
    domain_of,
    fold_address,
    fold_domain,
    fold_id,
    fold_institution,
    fold_name,
    is_address,
    is_full_name,
    registrable_domain,
    same_institution,
)

LABELS = st.sampled_from(["uni", "cs", "poly", "ac", "edu", "co", "uk", "au", "example", "com", "xa", "xb"])
DOMAINS = st.lists(LABELS, min_size=1, max_size=4).map(".".join)
TABLES = st.dictionaries(DOMAINS, DOMAINS, max_size=4)


@pytest.mark.parametrize(
    "written",
    [
        "r1@x.example", " R1@X.EXAMPLE ", "Name <r1@x.example>", "Name, A. <R1@x.Example> ", "<r1@x.example>",
        "r1@x.example.", "r1@x.example;", "mailto:r1@x.example", "\ufeffr1@x.example\u200b", "\uff521@x.example",
        "\tr1@x.example\r\n", "\u00a0r1@x.example",
    ],
)  # fmt: skip
def test_b08_every_layout_of_an_address_folds_to_one_form(written: str) -> None:
    """Capitals, spaces and "Name <addr>" must not make another person."""
    assert fold_address(written) == "r1@x.example"
    assert domain_of(written) == "x.example"


@pytest.mark.parametrize("blank", ["", "   ", None, "\t\n", "\u200b"])
def test_a_blank_address_is_empty_and_no_address(blank: str | None) -> None:
    """Two missing addresses are not the same address."""
    assert fold_address(blank) == ""
    assert not is_address(fold_address(blank))
    assert domain_of(blank) == ""


@pytest.mark.parametrize("text", ["n/a", "none", "-", "@", "x@", "@x.example", "a b@x.example"])
def test_what_is_no_address_has_no_domain(text: str) -> None:
    """A placeholder in an address field joins nobody."""
    assert domain_of(text) == ""


def test_an_international_domain_equals_its_ascii_form() -> None:
    """Mail systems show either; both are one domain."""
    assert fold_address("a@b\u00fccher.example") == fold_address("A@xn--bcher-kva.example")


def test_ids_fold_by_case_and_addresses_as_addresses() -> None:
    """Ids are compared folded only where no record has exactly the given one."""
    assert fold_id(" ~Ana_B1 ") == "~ana_b1"
    assert fold_id("Ana <A@X.example>") == "a@x.example"
    assert fold_id(None) == ""


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("bigco.example", "bigco.example", True),
        ("sub.uni.example", "uni.example", True),
        ("mail.cs.uni.example", "uni.example", True),
        ("cs.uni.example", "math.uni.example", True),
        ("UNI.Example", "uni.example.", True),
        ("notuni.example", "uni.example", False),
        ("uni.example", "uni.example.org", False),
        ("poly.xa.example", "poly.xb.example", False),
        ("ox.ac.uk", "cam.ac.uk", False),
        ("cs.ox.ac.uk", "maths.ox.ac.uk", True),
        ("ac.uk", "ox.ac.uk", False),
        ("ac.uk", "ac.uk", False),
        ("edu", "edu", False),
        ("mit.edu", "csail.mit.edu", True),
        ("mit.edu", "cmu.edu", False),
        ("x.edu.au", "y.edu.au", False),
        ("a.x.edu.cn", "x.edu.cn", True),
        ("x.co.jp", "y.co.jp", False),
        ("x.or.jp", "y.or.jp", False),
        ("iisc.ac.in", "iitb.ac.in", False),
        ("usp.br", "ime.usp.br", True),
        ("x.com.br", "y.com.br", False),
        ("", "", False),
        ("a..b", "a..b", False),
        ("10.0.0.1", "11.0.0.1", False),
    ],
)
def test_b04_domains_match_by_whole_labels(one: str, other: str, same: bool) -> None:
    """Sub-domains and siblings of one institution match; look-alikes, other suffixes and bare suffixes do not."""
    assert same_institution(one, other, {}) is same
    assert same_institution(other, one, {}) is same


@pytest.mark.parametrize(
    ("one", "other", "table"),
    [
        ("oldco.example", "newco.example", {"oldco.example": "newco.example"}),
        ("cs.oldco.example", "newco.example", {"oldco.example": "newco.example"}),
        ("cs.oldco.example", "mail.newco.example", {" OldCo.example": "@NEWCO.example"}),
        ("a.example", "c.example", {"a.example": "b.example", "b.example": "c.example"}),
        ("a.example", "b.example", {"a.example": "c.example", "b.example": "c.example"}),
        ("a.example", "b.example", {"a.example": "b.example", "b.example": "a.example"}),
        ("lab.uni.example", "institute.example", {"lab.uni.example": "institute.example"}),
        ("lab.uni.example", "uni.example", {"lab.uni.example": "institute.example"}),
        ("bigco", "bigco.example", {"bigco": "bigco.example"}),
    ],
)
def test_b04_the_alias_table_joins_at_every_parent(one: str, other: str, table: dict[str, str]) -> None:
    """A firm with two domains is one employer; an alias adds a match and takes none away."""
    assert same_institution(one, other, table)
    assert same_institution(other, one, table)


def test_b04_an_alias_of_one_part_leaves_the_rest_apart() -> None:
    """An alias for a sub-domain says nothing about its siblings."""
    assert not same_institution("cs.uni.example", "institute.example", {"lab.uni.example": "institute.example"})


@given(DOMAINS, DOMAINS, TABLES)
def test_the_domain_relation_is_symmetric(one: str, other: str, table: dict[str, str]) -> None:
    """Who is named first never decides a conflict."""
    assert same_institution(one, other, table) == same_institution(other, one, table)


@given(DOMAINS, DOMAINS, TABLES, DOMAINS, DOMAINS)
def test_another_alias_never_parts_two_domains(
    one: str, other: str, table: dict[str, str], source: str, target: str
) -> None:
    """A longer table can only bar more."""
    if source not in table and same_institution(one, other, table):
        assert same_institution(one, other, table | {source: target})


@given(DOMAINS)
def test_the_registrable_part_is_a_parent_of_its_own(domain: str) -> None:
    """Folding to the institution twice changes nothing."""
    found = registrable_domain(domain)
    assert found == "" or (domain == found or domain.endswith("." + found))
    assert registrable_domain(found) == found


@pytest.mark.parametrize("domain", ["gmail.com", "yahoo.co.uk", "yahoo.fr", "qq.com", "163.com", "gmx.de", "proton.me"])
def test_b05_mail_providers_have_no_institution(domain: str) -> None:
    """Sharing a provider says nothing about an employer."""
    assert domain in FREE_MAIL
    assert Institutions().keys(domain) == frozenset()
    assert Institutions().keys("mail." + domain) == frozenset()


def test_b05_a_venue_may_name_further_providers() -> None:
    """Local providers are known to the chair alone; the table covers their sub-domains too."""
    table = Institutions({}, {*FREE_MAIL, "Campus-Mail.example"})
    assert table.keys("students.campus-mail.example") == frozenset()
    assert table.keys("uni.example") == {"uni.example"}


@pytest.mark.parametrize(
    "text",
    ["", "  ", None, "None", "N/A", "n.a.", " Independent  Researcher ", "(unaffiliated)", "-", "Student", "???"],
)
def test_b05_placeholders_name_no_institution(text: str | None) -> None:
    """Two people without an employer are not colleagues."""
    assert fold_institution(text) == ""


def test_institution_names_compare_folded_and_equal_only() -> None:
    """Capitals, width and spaces are layout; a longer name is another institution."""
    assert fold_institution(" University  of\u00a0XA ") == fold_institution("university of xa")
    assert fold_institution("University of XA") != fold_institution("University of XA, Lab")


@pytest.mark.parametrize(
    "text", ["uni.example", "@uni.example", "*.uni.example", "https://uni.example/cs", "a@UNI.example"]
)
def test_a_domain_is_read_in_any_usual_notation(text: str) -> None:
    """Conflict domains are typed by hand."""
    assert fold_domain(text) == "uni.example"


def test_names_compare_without_accents_and_in_either_order() -> None:
    """Names serve notices only, so their comparison may be generous."""
    assert fold_name("Do\u00eb,  Zo\u00eb Q.") == fold_name("zoe q doe")
    assert is_full_name(fold_name("Zoe Doe"))
    assert is_full_name("\u738b\u4f1f")
    assert not is_full_name("zoe")
    assert fold_name(None) == ""


@given(st.text(max_size=30))
def test_folding_is_idempotent(text: str) -> None:
    """A folded form can be stored and compared later."""
    for fold in (fold_address, fold_id, fold_institution, fold_name):
        assert fold(fold(text)) == fold(text)
