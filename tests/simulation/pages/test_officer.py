"""What a privacy officer is answered: figures follow from losses, words from trust and assumptions."""

import base64
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from dprec.protocols.one_shot import _EFFECTS, _GROUPS
from simulation.analysis.protocol_results import result_of
from simulation.pages.drawing import Rendered
from simulation.pages.officer import MOST_ASKED, Subject, officer_section
from simulation.pages.page import page
from simulation.storage.summary import read_summary
from tests.simulation.pages.browser import Browser, in_browser
from tests.simulation.pages.conftest import add_baseline, alter_summary, words_of, write_comparison, write_run

CERTAIN = "no useful bound (above 99.9 %)"
TERMS: dict[str, Any] = {"repetitions": 52, "epsilon_repeated": 9.0946, "any_two_repeated": 21.31}
WHOLE: dict[str, Any] = {
    "privacy.epsilon_per_rating": None,
    "privacy.epsilon_per_user.max": None,
    "privacy.epsilon_composed.max": 1.0,
    "privacy.epsilon_any_two": 2.1229,
    "privacy.hides_rated_items": True,
    "terms": TERMS,
}


NOISY_TABLE = {"embeddings_epsilon": 2.0, "embeddings_any_two": 3.1574, "uncovered": "the items' effects"}
NO_LOSS = {f"privacy.{loss}": None for loss in (
    "epsilon_per_rating", "epsilon_per_user.max", "epsilon_composed.max"
)}  # fmt: skip


def answers(page: str) -> dict[str, list[str]]:
    """Return what a run's page answers to each question, in sentences."""
    block = page.partition('aria-labelledby="officer"')[2].partition("</section>")[0]
    rows = re.findall(r'<th scope="row"[^>]*>(.*?)</th>\s*<td[^>]*>(.*?)</td>', block)
    plain = {unescape(asked).replace("\xa0", " "): answered.replace("\xa0", " ") for asked, answered in rows}
    return {asked: re.findall("<div>(.*?)</div>", unescape(given)) for asked, given in plain.items()}


def asked_of(folder: Path, altered: dict[str, Any], **settings: Any) -> dict[str, list[str]]:
    return answers(words_of(write_run(folder / "run", altered=altered, **settings))[0])


GUESS, YEAR = "What does a guess of 50 % become, at most?", "What do 52 repetitions add up to?"
OTHERS, DEVIATES = (
    "What do other customers learn from what they are sent?",
    "Who adds up, and what if it deviates?",
)
ASSUMED, SEES, WITHDRAWN = (
    "Which colluders and dropouts are assumed?",
    "Who sees what?",
    "What can be withdrawn?",
)


def test_a_promise_per_rating(tmp_path: Path) -> None:
    """1 per rating, of at most 200 ratings: e / (1 + e) = 73.1 %."""
    answered = asked_of(
        tmp_path, {"terms": {**TERMS, "epsilon_repeated": 400.0}, "privacy.epsilon_composed.max": 7.5}
    )
    assert answered[GUESS] == [
        "One rating: ε = 1, 73 %.",
        f"All values that the busiest user of the train part sends: ε = 7.5 with δ = 1e-06, {CERTAIN}.",
        "δ × 120 users = 0.00012: a chance of at most 1 in 8,333 that ε fails for anybody.",
    ]
    (rating, basic, composed) = answered[YEAR]
    assert rating == "One rating: ε = 52, no useful bound (above 99.9 %)."
    (epsilon,) = re.findall(r"busiest user of the train part, added up: ε = ([\d,]+), no useful", basic)
    assert int(epsilon.replace(",", "")) % 52 == 0
    assert composed == "By a more exact calculation: ε = 400 with δ = 1e-06, no useful bound (above 99.9 %)."
    assert answered[SEES] == ["The server: rated items, noise, and which devices take part."]
    assert answered[ASSUMED] == ["None: any number of devices may collude or drop out."]
    assert answered[WITHDRAWN][0] == (
        "The server can delete a user's reports and learn again without them; what was learned, or sent to "
        "others, stays."
    )
    assert answered[DEVIATES][1].startswith("No server is trusted, but the app is")


def test_the_busiest_loses_no_more_than_the_sum(tmp_path: Path) -> None:
    terms = {**TERMS, "epsilon_repeated": 156.0}
    altered = {"privacy.epsilon_per_user.max": 3.0, "privacy.epsilon_composed.max": 3.0, "terms": terms}
    answered = asked_of(tmp_path, altered)
    assert answered[GUESS][1] == "All values that the busiest user of the train part sends: ε = 3, 95 %."
    assert answered[YEAR][1:] == [
        "The busiest user of the train part, added up: ε = 156, no useful bound (above 99.9 %)."
    ]


@pytest.mark.parametrize(("composed", "said"), [(2.9999979, "3, 95 %"), (2.94, "2.94 with δ = 1e-06, 95 %")])
def test_what_the_sum_keeps_as_it_is_written_has_no_delta(tmp_path: Path, composed: float, said: str) -> None:
    altered = {"privacy.epsilon_per_user.max": 3.0, "privacy.epsilon_composed.max": composed}
    answered = asked_of(tmp_path, altered)[GUESS]
    assert answered[1] == f"All values that the busiest user of the train part sends: ε = {said}."
    assert len(answered) == (2 if composed > 2.95 else 3)


@pytest.mark.parametrize(
    ("trust", "terms", "seen", "withdrawn"),
    [
        (
            "local",
            {"proxy": True},
            "A proxy: who sends and when, which it strips.",
            "Nothing that was sent: a proxy strips senders.",
        ),
        (
            "local",
            {"budgets_seen": True},
            "It sees each user's ε too, which nothing protects.",
            "The server can delete a user's reports and learn again without them; what was learned, or sent "
            "to others, stays.",
        ),
        (
            "shuffle",
            {"shufflers": 2, "named_sets": True},
            "Rated items go to it under the user's name, reports of ratings without one.",
            "The server can delete item sets, sent under users' names; reports of ratings carry no sender.",
        ),
        (
            "shuffle",
            {"shufflers": 2},
            "Shufflers: which devices take part, and how many messages each sends.",
            "Nothing that was sent: messages carry no sender.",
        ),
    ],
)
def test_who_sees_what_and_what_can_be_deleted(
    tmp_path: Path, trust: str, terms: dict[str, Any], seen: str, withdrawn: str
) -> None:
    answered = asked_of(tmp_path, {"terms": {**TERMS, **terms}}, trust=trust)
    assert answered[SEES][1] == seen
    assert answered[WITHDRAWN][0] == withdrawn


@pytest.mark.parametrize("trust", ["local", "central"])
def test_a_deployed_run_keeps_no_reports_that_could_be_deleted(tmp_path: Path, trust: str) -> None:
    answered = asked_of(tmp_path, {"devices": "deployed"}, trust=trust)
    assert answered[WITHDRAWN] == [
        "Reports are deleted when the run is complete. What was learned, or sent to others, stays, and "
        "cannot be computed again without a user."
    ]


def test_the_accountant_may_have_no_figure_for_repetitions(tmp_path: Path) -> None:
    unknown = {"repetitions": 52}
    answered = asked_of(tmp_path, {**WHOLE, "terms": unknown}, trust="central")
    assert answered[YEAR][3:] == [
        "A more exact calculation has no figure at δ = 1e-06; the sum holds.",
        "Which of two profiles a user has: ε = 110.4 with δ = 5.2e-05, no useful bound (above 99.9 %).",
    ]


def test_whole_profiles_in_sums(tmp_path: Path) -> None:
    answered = asked_of(tmp_path, WHOLE, trust="central")
    assert answered[GUESS] == [
        "By anybody but the server:",
        "Whether the busiest user of the train part has this profile or none: ε = 1 with δ = 1e-06, 73 %.",
        "Which of two profiles a user has: ε = 2.123 with δ = 1e-06, 89 %.",
        "δ × 120 users = 0.00012: a chance of at most 1 in 8,333 that ε fails for anybody.",
    ]
    assert answered[YEAR] == [
        "By anybody but the server:",
        f"The busiest user of the train part, added up: ε = 52 with δ = 5.2e-05, {CERTAIN}.",
        "δ × 120 users = 0.0062: a chance of at most 1 in 160 that ε fails for anybody.",
        "By a more exact calculation: ε = 9.095 with δ = 1e-06, no useful bound (above 99.9 %).",
        "Which of two profiles a user has: ε = 21.31 with δ = 1e-06, no useful bound (above 99.9 %).",
    ]
    assert answered[WITHDRAWN][0] == "The server can delete a user's data; what was released stays."


@pytest.mark.parametrize("trust", ["local", "shuffle", "secure-aggregation", "central"])
def test_only_a_central_server_is_said_to_know_without_guessing(tmp_path: Path, trust: str) -> None:
    answered = asked_of(tmp_path, {**WHOLE, "terms": {**TERMS, "colluders": 5, "dropouts": 0.1}}, trust=trust)
    said = [answered[asked][0] == "By anybody but the server:" for asked in (GUESS, YEAR)]
    assert said == [trust == "central"] * 2


def test_what_holds_between_any_two_profiles_without_a_delta_has_none(tmp_path: Path) -> None:
    """In the local model the sum of losses holds for them."""
    losses = {"privacy.epsilon_per_user.max": 3.0, "privacy.epsilon_any_two": 3.0}
    altered = {**WHOLE, **losses, "terms": {**TERMS, "epsilon_repeated": 52.0, "any_two_repeated": 156.0}}
    answered = asked_of(tmp_path, altered)
    assert answered[GUESS][:2] == [
        "Whether the busiest user of the train part has this profile or none: ε = 1 with δ = 1e-06, 73 %.",
        "Which of two profiles a user has: ε = 3, 95 %.",
    ]
    assert answered[YEAR][-1] == "Which of two profiles a user has: ε = 156, no useful bound (above 99.9 %)."


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ("claimed", "Less than the paper claims: its proof has a gap."),
        ("declared", "Nothing: ε is the word of whoever wrote the code."),
        ("none", "Nothing, and nothing is promised."),
    ],
)
def test_how_far_a_promise_carries(tmp_path: Path, status: str, said: str) -> None:
    assert asked_of(tmp_path, {"privacy.status": status})["What is proved?"] == [said]


@pytest.mark.parametrize(
    ("trust", "terms", "provided"),
    [
        ("local", {}, "whatever is known besides or done later with what was sent"),
        (
            "shuffle",
            {"shufflers": 2},
            "provided one shuffler is honest and the other reports are drawn as the protocol says",
        ),
        (
            "secure-aggregation",
            {"colluders": 5, "dropouts": 0.1},
            "provided the server follows the protocol, at most 5 devices help it and the masks hold, which "
            "is cryptography",
        ),
        ("central", {}, "against everybody except the server"),
    ],
)
def test_a_proof_rests_on_whom_one_trusts(
    tmp_path: Path, trust: str, terms: dict[str, Any], provided: str
) -> None:
    answered = asked_of(tmp_path, {**WHOLE, "terms": {**TERMS, **terms}}, trust=trust)
    assert answered["What is proved?"] == [f"All ε above, by mathematics, {provided}."]


@pytest.mark.parametrize(
    ("users", "said"),
    [
        (200_000, "0.2: a chance of at most 1 in 5 that ε fails for anybody"),
        (700_000, "0.7: a chance of at most 70 % that ε fails for anybody"),
        (10_400_000, "10: expect ε to fail for at most 10.4 people"),
    ],
)
def test_a_delta_counts_people(tmp_path: Path, users: int, said: str) -> None:
    answered = asked_of(tmp_path, {**WHOLE, "dataset.represents": users}, trust="central")
    assert answered[GUESS][-1] == f"δ × {users:,} users = {said}."


def test_lists_are_of_items(tmp_path: Path) -> None:
    listed = {"accuracy": {"ndcg_at_10": 0.3}, "privacy.hides_rated_items": True}
    answered = asked_of(tmp_path, listed)
    assert answered[GUESS][0] == "One item, in the set or not: ε = 1, 73 %."
    assert answered[YEAR][0] == "One item, in the set or not: ε = 52, no useful bound (above 99.9 %)."
    assert "rating" not in str(answered).lower()


def test_secure_aggregation_says_whom_it_bears(tmp_path: Path) -> None:
    terms = {**TERMS, "colluders": 5, "dropouts": 0.1}
    answered = asked_of(tmp_path, {**WHOLE, "terms": terms}, trust="secure-aggregation")
    assert answered[ASSUMED] == [
        "At most 5 devices collude with the server, which is a choice; with more, ε does not hold.",
        "Whoever runs the server can enrol such devices.",
        "At most 10% drop out; with more, nothing is released and the budget is spent.",
    ]
    assert answered[DEVIATES][0] == "Trust: secure-aggregation."
    assert "must follow the protocol" in answered[DEVIATES][1]
    assert answered[SEES] == ["The server: noisy sums only, and which devices take part."]


@pytest.mark.parametrize(
    ("alone", "said"), [(None, "nothing is proved"), (40.0, "a user loses up to ε = 40")]
)
def test_shufflers_who_all_collude(tmp_path: Path, alone: float | None, said: str) -> None:
    terms = {**TERMS, "shufflers": 2}
    altered = {**WHOLE, "terms": terms, "privacy.epsilon_per_user.max": alone}
    answered = asked_of(tmp_path, altered, trust="shuffle")
    assert answered[DEVIATES][1].endswith(f"If all collude with the server, {said}.")
    assert answered[SEES] == [
        "The server: noisy messages without senders, and which devices take part.",
        "Shufflers: which devices take part, and how many messages each sends.",
    ]
    assert answered[ASSUMED] == [
        "None, but the other reports are drawn as the protocol says.",
        "Whoever runs the server can enrol devices whose reports hide nobody.",
        "At least 1 of 2 shufflers is honest.",
    ]


@pytest.mark.parametrize(
    ("altered", "said"),
    [
        (
            {},
            ["Ratings: the same ε holds against them.",
             "Item sets: not covered. Recommendations are made from them without noise."],
        ),
        (
            {"traffic.downlink.payload_bytes": 9},
            ["Ratings: the same ε holds against them.",
             "Item sets: not covered. What they are sent is made from them without noise."],
        ),
        (
            {"traffic.downlink.payload_bytes": 9, "terms": {**TERMS, **NOISY_TABLE}},
            ["Ratings: the same ε holds against them.",
             "Item sets: ε = 2 for a set or none, 3.157 between any two with δ = 1e-06, by noise.",
             "Not covered: the items' effects."],
        ),
        (
            {"privacy.hides_rated_items": True},
            ["Recommendations are made from what ε covers, so the same ε holds against them."],
        ),
        (
            {"traffic.downlink.payload_bytes": 9, "privacy.hides_rated_items": True},
            ["What they are sent is made from what ε covers, so the same ε holds against them."],
        ),
        (
            {"traffic.downlink.payload_bytes": 9, "privacy.status": "declared"},
            ["What they are sent is made from everybody's data; no ε is proved."],
        ),
        (
            {"privacy.status": "none"},
            ["Recommendations are made from everybody's data; no ε is proved."],
        ),
        (
            # As of sampled negatives: what is claimed is not proved, though it would hide item sets.
            {"privacy.status": "claimed", "privacy.hides_rated_items": True, **NO_LOSS},
            ["Recommendations are made from everybody's data; no ε is proved."],
        ),
        ({"traffic.uplink.message_mean_per_user": 0}, ["Nothing: nothing is sent."]),
    ],
)  # fmt: skip
def test_what_others_learn(tmp_path: Path, altered: dict[str, Any], said: list[str]) -> None:
    assert asked_of(tmp_path, altered)[OTHERS] == said


def test_where_nothing_is_sent_nobody_learns(tmp_path: Path) -> None:
    answered = asked_of(tmp_path, {"traffic.uplink.message_mean_per_user": 0})
    assert answered[SEES] == ["Nobody sees anything."]
    assert answered[ASSUMED] == ["None."]
    assert answered[YEAR] == ["Nothing."]


def test_a_scale_that_ratings_decided_is_said_once(tmp_path: Path) -> None:
    said = "Scale (low, step): read off private ratings and told everybody; no ε covers that."
    run = write_run(tmp_path / "run", altered={"dataset.scale_read_off": ["low", "step"]})
    assert words_of(run)[0].count(said) == 1
    assert "told everybody" not in words_of(write_run(tmp_path / "other"))[0]


def test_what_is_unknown_has_a_dash(tmp_path: Path) -> None:
    without = {"mechanism": "none", "epsilon": None, "completion": "mf"}
    unknown = {"privacy.epsilon_composed.max": None, "privacy.epsilon_per_user.max": None}
    answered = asked_of(tmp_path, unknown, **without)
    assert answered[GUESS] == ["Everything that a user sends: no ε is proved."]
    assert answered[YEAR] == []
    assert answered[DEVIATES] == ["The server, to which nothing is promised."]


@pytest.mark.parametrize(
    ("trust", "hides", "seen"),
    [
        ("local", False, ["It sees in which period each item was rated."]),
        ("local", True, []),
        ("central", True, ["It sees in which period each item was rated."]),
    ],
)
def test_a_schedule_counts_its_collections_and_shows_when(
    tmp_path: Path, trust: str, hides: bool, seen: list[str]
) -> None:
    altered = {"terms": {"collections": 5}, "privacy.hides_rated_items": hides}
    answered = asked_of(tmp_path, altered, trust=trust)
    assert answered[YEAR] == ["The figures above count all 5 collections of the schedule."]
    assert answered[SEES][1:] == seen
    assert " the busiest user " in " ".join(answered[GUESS])
    assert "train part" not in str(answered)


@pytest.mark.parametrize("suited", [False, True])
def test_only_what_may_be_answered_once_costs_nothing_more(tmp_path: Path, suited: bool) -> None:
    answered = asked_of(tmp_path, {"terms": {**TERMS, "increments": suited}})
    assert ("increments" in answered[YEAR][-1]) is suited


SIX = [{"name": f"protocol-{place}", "rmse": 0.8 + place / 100, "per": "user"} for place in range(2)]


def test_a_comparison_asks_what_the_answer_names(tmp_path: Path) -> None:
    folder = add_baseline(write_comparison(tmp_path / "comparison", SIX, match={"epsilon": "user"}), 1.1)
    block = words_of(folder)[0].partition('aria-labelledby="officer"')[2].partition("</section>")[0]
    assert re.findall(r"<th scope=\"col\">\s*<span>(.*?)</span>", block) == ["question", "protocol-0"]
    hopeless = add_baseline(write_comparison(tmp_path / "hopeless", SIX, match={"epsilon": "user"}), 0.1)
    assert 'aria-labelledby="officer"' not in words_of(hopeless)[0]


ALONE = """
for (const each of document.querySelectorAll("details")) each.open = true;
for (const each of document.querySelectorAll("header, aside, section")) {
  each.hidden = each.getAttribute("aria-labelledby") !== "officer";
}
"""


@in_browser
def test_it_prints_on_one_page(browser: Browser, tmp_path: Path) -> None:
    """Even with as many protocols as a page asks of, all of which assume something or tell of item sets."""
    assumed = {"colluders": 5, "dropouts": 0.1, "shufflers": 2}
    uncovered = ", ".join((*_GROUPS, *_EFFECTS))
    noisy = {**NOISY_TABLE, "uncovered": uncovered, "budgets_seen": True}
    revealed = {"privacy.epsilon_composed.max": 7.5, "dataset.scale_read_off": ["low", "high", "step"]}
    subjects = []
    for trust, altered in (
        ("shuffle", {**WHOLE, "terms": {**TERMS, **assumed}}),
        ("local", {**revealed, "terms": {**TERMS, **noisy}}),
    ):
        run = write_run(tmp_path / trust, altered=altered, trust=trust, notes=[])
        alter_summary(run, {"privacy.notes": [], "name": "best-secure-aggregation-per-user"})
        summary = read_summary(run)
        subjects.append(Subject(result_of(summary), summary))
    section = officer_section(subjects * (MOST_ASKED // 2))
    file = tmp_path / "report.html"
    file.write_text(
        page("study", "dprec comparison", "", [], [], [section], lambda plot: Rendered(plot, "", None))
    )
    browser.open(file, 1280)
    browser.run(ALONE)
    printed = browser.devtools("Page.printToPDF", preferCSSPageSize=True)["data"]
    assert len(re.findall(rb"/Type /Page\b", base64.b64decode(printed))) == 1
