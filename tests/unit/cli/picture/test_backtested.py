from __future__ import annotations

import re
from dataclasses import replace
from html import unescape

import pytest
import yaml

from ballast.api import BalancingPolicy
from ballast.cli.picture.backtested import backtested_page
from ballast.cli.picture.exhibits import exhibits
from ballast.simulation.ranking import ranking
from ballast.simulation.study import Study
from tests.unit.cli.picture.outline import Outline
from tests.unit.simulation.studies import CAREFUL, EAGER, STILL, document, result, study


def page(made: Study) -> str:
    ranked = ranking(made)
    return backtested_page(made, ranked, exhibits(made, ranked), made="2026-11-22 21:00 UTC by ballast 0.1.0")


def section(text: str, heading: str) -> str:
    return re.split(r"<h2[^>]*>", text.partition(f">{heading}</h2>")[2])[0]


def rows(text: str) -> list[list[str]]:
    """Of the first table."""
    body = text.partition("<tbody>")[2].partition("</tbody>")[0]
    return [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in body.split("</tr>")[:-1]]


def test_the_page_is_well_formed_and_needs_nothing_else() -> None:
    text = page(study())
    outline = Outline(text)
    assert outline.open == []
    assert [link for link in outline.outside if not link.startswith("#")] == []
    assert not re.search(r"https?://|@import|url\(|<script", text)


def test_the_recommendation_comes_first_and_says_what_it_brings() -> None:
    text = page(study([CAREFUL, STILL]))
    assert "<h1>Recommended: careful</h1>" in text
    assert text.index("<b>Recommended: careful, ") < text.index("Made 2026-11-22 21:00 UTC by ballast 0.1.0.")
    assert re.search(r"Against still, which moves nothing, the imbalance goes from [\d.]+ to [\d.]+ point-hours", text)


def test_where_moving_does_not_help_it_says_so() -> None:
    idle = result(STILL)
    made = Study(
        (idle, replace(idle, case=replace(idle.case, policy=CAREFUL))),
        {policy: document(policy) for policy in (STILL, CAREFUL)},
    )
    assert "<h1>Better move nothing: still</h1>" in page(made)


def test_the_ranking_has_every_policy_with_intervals_and_marks_the_front() -> None:
    found = rows(section(page(study([CAREFUL, EAGER, STILL])), "Ranking"))
    assert [row[1] for row in found] == ["<b>eager *</b>", "careful *", "still *"]
    assert all(re.search(r"[\d.]+ ±[\d.]+", row[2]) for row in found)


def test_the_five_questions_are_answered_for_every_policy() -> None:
    found = rows(section(page(study()), "PIP-364&#8217;s five questions"))
    assert [(row[0], len(row)) for row in found] == [(EAGER, 6), (CAREFUL, 6), (STILL, 6)]


def test_what_could_not_be_known_is_said() -> None:
    missing = "Zones <are> not recorded."
    assert "<li>Zones &lt;are&gt; not recorded.</li>" in section(
        page(study(unknown=(missing,))), "What could not be known"
    )
    assert "Nothing was missing" in section(page(study()), "What could not be known")


def test_what_was_done_otherwise_than_asked_is_told() -> None:
    assert "Done otherwise: each case was run once." in page(replace(study(), remarks=("each case was run once",)))


def test_windows_that_were_left_out_are_told_with_the_reason() -> None:
    text = page(replace(study(), left_out={"pool <b>": "an outage"}))
    assert "<li>pool &lt;b&gt;: an outage</li>" in section(text, "Windows left out")
    assert "1 window could not be used" in text
    assert "left out" not in page(study())


def test_the_policy_is_ready_to_apply() -> None:
    text = section(page(study([CAREFUL, STILL])), "Apply it")
    written = unescape(text.partition('<pre tabindex="0">')[2].partition("</pre>")[0])
    assert yaml.safe_load(written) == document(CAREFUL)
    assert BalancingPolicy.parse(yaml.safe_load(written)).metadata.name == CAREFUL


@pytest.mark.parametrize(("mode", "told"), [("Recommend", True), ("Approve", True), ("Enforce", False)])
def test_a_policy_that_moves_nothing_by_itself_is_told_apart(mode: str, told: bool) -> None:
    made = study([CAREFUL])
    spec = {"moves": {"mode": mode}}
    made = Study(made.results, {CAREFUL: document(CAREFUL, spec)})
    assert (f"moves.mode: {mode}</code>, as it stands here" in page(made)) == told


def test_a_policy_for_every_node_is_not_applied_without_a_thought() -> None:
    made = study([CAREFUL])
    everywhere = {**document(CAREFUL), "spec": {"nodeSelector": {}}}
    assert "name your pool&#8217;s in <code>nodeSelector</code>" in page(Study(made.results, {CAREFUL: everywhere}))
    assert "nodeSelector</code>" not in page(made)


def test_what_was_never_level_has_no_rounds() -> None:
    found = {row[0]: row[5] for row in rows(section(page(study()), "PIP-364&#8217;s five questions"))}
    assert found[STILL] == "–, 4 of 4"
    assert found[CAREFUL] == "<b>2.0, 0 of 4</b>"


def test_windows_with_seeds_of_their_own_are_counted_by_what_ran() -> None:
    text = page(study(windows=["a", "b"], seeds={"a": (1, 2), "b": (7, 8)}))
    assert "3 policies ran in 2 windows with 2 seeds: 4 cases each" in text
    found = {row[0]: row[5] for row in rows(section(text, "PIP-364&#8217;s five questions"))}
    assert found[STILL] == "–, 4 of 4"
    alone = page(study(windows=["a", "b"], seeds={"a": (1,), "b": (7,)}))
    assert "as a band" not in alone


def test_names_are_escaped() -> None:
    assert "<b>x</b>" not in page(study(["careful", "eager <b>x</b>"], windows=["<b>x</b>"]))
