"""Texts of any language, any length and any oddity, through the scores of the default scorer."""

import numpy as np
import pytest

from matching import Params, Publication, Reviewer, Submission, Venue, recommend
from matching.scores.text import text_affinity

pytestmark = pytest.mark.usefixtures("no_sockets")

WORDS = [
    f"{start}{middle}{end}"
    for start in "bdfgklmnprst"
    for middle in ("a", "e", "io", "u")
    for end in ("rn", "lt", "sk")
]


def reviewer(name, *texts):
    return Reviewer(name, publications=tuple(Publication(f"{name}-{at}", text) for at, text in enumerate(texts)))


def drawn(rng, count):
    return " ".join(rng.choice(WORDS, size=count))


def scores(people, papers):
    return text_affinity(papers, people).astype(np.float64)


@pytest.mark.parametrize(
    ("submission", "expert", "other"),
    [
        ("深度学习的图像识别", "图像识别方法研究", "蛋白质折叠模拟"),
        ("ニューラルネットによる翻訳", "ニューラル機械翻訳", "量子計算の誤り訂正"),
        ("การเรียนรู้ของเครื่อง", "การเรียนรู้เชิงลึก", "เศรษฐศาสตร์มหภาค"),
        ("딥러닝을 위한 최적화", "딥러닝 최적화 기법", "중세 미술사"),
        ("Обучение с подкреплением", "обучение роботов", "средневековое искусство"),
        ("التعلم العميق للصور", "التعلم العميق", "تاريخ الفن"),
        ("Memory safety in C", "Compilers for C", "Compilers for C++"),
        ("Mixed models in R", "Packages for R", "Packages for Julia"),
        ("C", "C", "R"),
        ("R", "the R of", "C++"),
        (r"Bounds for norms $\|X\|_{\infty}$ of $\alpha$-stable laws", "<p>Alpha-stable laws &amp; norms</p>",
         r"$R$-trees in $C$"),
        ("Bandits", "bandit", "parsers"),
    ],
)  # fmt: skip
def test_whoever_writes_in_the_same_words_comes_first(submission, expert, other):
    """Scripts without spaces, letters that are languages, formulas, markup, one word."""
    people = [reviewer("r1", expert), reviewer("r2", other), reviewer("r3", "an entirely different subject")]
    found = scores(people, [Submission("p1", submission), Submission("p2", "something else again")])
    assert found[0, 0] > found[0, 1] and found[0, 0] > np.nan_to_num(found[0, 2])
    assert not np.isnan(found[0, 0]) and (np.nan_to_num(found) <= 1).all() and (np.nan_to_num(found) >= 0).all()


def test_variables_of_formulas_make_no_statistician():
    """The real numbers are not the language R."""
    people = [
        reviewer("stats", "Packages for R"),
        reviewer("analysis", "Convex functions on intervals"),
        reviewer("z", "Wheat"),
    ]
    found = scores(
        people, [Submission("p1", r"Convex functions on $\mathbb{R}$ and $R^n$"), Submission("p2", "Barley fields")]
    )
    plain = scores(people, [Submission("p1", "Convex functions on and"), Submission("p2", "Barley fields")])
    assert found[0, 1] > found[0, 0]
    np.testing.assert_allclose(found, plain, atol=1e-6)


@pytest.mark.parametrize("blank", ["", "   ", "\n\t", "1 2 3", "the of and", "$$", "<p></p>", "---", "\u200b", "…"])
def test_b25_texts_that_say_nothing_are_unscored_beside_ones_that_do(blank):
    """Unknown is not zero, and nobody else's score is disturbed."""
    people = [
        reviewer("r1", "graph kernels"),
        reviewer("r2", blank),
        reviewer("r3", "soft robots"),
        reviewer("r4", "wheat"),
    ]
    papers = [Submission("p1", "kernels on graphs"), Submission("p2", blank, blank), Submission("p3", "robot hands")]
    found = scores(people, papers)
    assert np.isnan(found[1]).all() and np.isnan(found[:, 1]).all()
    rest = found[[0, 2]][:, [0, 2, 3]]
    assert not np.isnan(rest).any()
    alone = scores([people[0], people[2], people[3]], [papers[0], papers[2]])
    np.testing.assert_allclose(rest, alone, atol=1e-6)


def test_profiles_of_fifty_thousand_words_do_not_drown_the_rest():
    """A thesis as one text, among abstracts: it is scored sanely and moves nobody's order."""
    rng = np.random.default_rng(2)
    topics = [drawn(rng, 30) for _ in range(6)]
    people = [reviewer(f"r{at}", topic + " " + drawn(rng, 60)) for at, topic in enumerate(topics)]
    papers = [Submission(f"p{at}", topic) for at, topic in enumerate(topics)]
    before = scores(people, papers)
    after = scores([*people, reviewer("long", drawn(rng, 50_000), drawn(rng, 20))], papers)
    assert not np.isnan(after).any()
    assert (after[:, :6].argmax(axis=1) == np.arange(6)).all() and (before.argmax(axis=1) == np.arange(6)).all()
    assert (after[:, 6] < after.diagonal()[:6]).all()


@pytest.mark.parametrize("times", [2, 100])
def test_a_repeated_phrase_changes_the_order_of_nobody_unrelated(times):
    """Somebody stuffs a profile with one phrase: whoever has nothing to do with it keeps the place."""
    rng = np.random.default_rng(4)
    topics = [drawn(rng, 25) for _ in range(8)]
    people = [reviewer(f"r{at}", topic + " " + drawn(rng, 40), drawn(rng, 50)) for at, topic in enumerate(topics)]
    papers = [Submission(f"p{at}", topics[at] + " " + drawn(rng, 40)) for at in range(8)]
    stuffed = "quantum annealing machine"
    once, often = (scores([*people, reviewer("x", f"{stuffed} " * count)], papers) for count in (1, times))
    others = np.arange(8)
    for row in range(8):
        far = np.abs(once[row, others][:, None] - once[row, others][None, :]) > 0.02
        same = np.sign(once[row, others][:, None] - once[row, others][None, :])
        now = np.sign(often[row, others][:, None] - often[row, others][None, :])
        assert (same == now)[far].all()


def test_repeating_a_phrase_is_damped():
    """A hundred times the phrase is worth a little more than once, and not more than a paper about it."""
    rng = np.random.default_rng(5)
    about = "graph kernels compare molecules by counting walks and paths"
    people = [
        reviewer("honest", f"Graph kernels. {about} {drawn(rng, 40)}"),
        reviewer("stuffed", f"Graph kernels. {'graph kernels ' * 100} {drawn(rng, 40)}"),
        *(reviewer(f"o{at}", drawn(rng, 60)) for at in range(8)),
    ]
    papers = [
        Submission("p1", f"Graph kernels by walks. {about}"),
        *(Submission(f"q{at}", drawn(rng, 50)) for at in range(6)),
    ]
    found = scores(people, papers)
    assert found[0, 0] > found[0, 1] > found[0, 2:].max()
    assert found[0, 1] < 1.0


def test_a_venue_of_odd_texts_makes_a_plan_that_names_them():
    """Everything at once, and nothing stops."""
    people = [
        reviewer("cjk", "图像识别方法"), reviewer("blank", " "), reviewer("one", "Graphs"), reviewer("c", "C"),
        reviewer("long", "graph theory " * 20_000), reviewer("markup", r"<b>\textbf{Graph} $\kappa$</b>"),
    ]  # fmt: skip
    papers = [Submission("p1", "图像识别"), Submission("p2"), Submission("p3", "Graph"), Submission("p4", "C programs")]
    plan = recommend(Venue(tuple(people), tuple(papers), demand=1, load_max=1), Params(rng=3))
    assert plan.status == "optimal"
    chosen = {pair.submission: pair.reviewer for pair in plan.assignments}
    assert chosen["p1"] == "cjk" and chosen["p4"] == "c"
    codes = {notice.code: notice for notice in plan.notices}
    assert codes["unscored-submission"].submissions == ("p2",)
    assert codes["repetitive-text"].reviewers == ("long",)
    assert {"one", "c"} <= set(codes["one-word-text"].reviewers) and "p3" in codes["one-word-text"].submissions
