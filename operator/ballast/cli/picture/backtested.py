"""The page about a study: which policy to take, what speaks for it, and how to apply it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from math import isfinite
from types import MappingProxyType

import yaml

from ballast.cli.output import Format
from ballast.cli.picture.exhibits import Choice, Exhibits, single
from ballast.cli.picture.page import Strong, grid, page
from ballast.cli.picture.timeline import MOST_MARKS, MOST_ROWS
from ballast.cli.report.runs import (
    EXPLAINED,
    MOST_MOVES,
    MOVE_COLUMNS,
    backtested_answer,
    move_row,
    ranked,
    ranked_columns,
)
from ballast.model import MovesMode
from ballast.simulation.ranking import METHOD, QUESTIONS, RULE, Ranking, Verdict, verdict
from ballast.simulation.study import Result, Study

_ASKED: Mapping[str, str] = MappingProxyType(
    {
        "Unequal machines: points left": "how far the hottest and the coldest node are apart when a window ends, beyond"
        " what counts as level",
        "Load jitter: needless moves a day": "moves beyond the fewest that could have leveled the pool",
        "Over placement": "moves that made their destination too hot",
        "Over unloading": "moves that left their source too cold",
        "Slow balancing: rounds, not leveled": "passes that moved anything in cases that were level at their end, and"
        " how many were not",
    }
)


def backtested_page(study: Study, ranking: Ranking, shown: Exhibits, *, made: str) -> str:
    """`shown`: of this study. `made`: when the page was made, and by which version."""
    return page(f"Ballast: backtest, {ranking.recommended}", _body(study, ranking, shown, made))


def _body(study: Study, ranking: Ranking, shown: Exhibits, made: str) -> Iterator[str]:
    yield from _recommendation(study, ranking, made)
    yield from _ranking(study, ranking)
    yield from _plots(study, ranking, shown)
    yield from _questions(study, ranking)
    yield from _left_out(study)
    yield from _unknown(study)
    yield from _to_apply(study, ranking)


def _recommendation(study: Study, ranking: Ranking, made: str) -> Iterator[str]:
    still = ranking.recommended == study.baseline
    yield f"<h1>{'Better move nothing' if still else 'Recommended'}: {escape(ranking.recommended)}</h1>"
    yield f'<p><b>{escape(backtested_answer(study, ranking))}</b></p><p class="soft">Made {escape(made)}.</p>'
    yield (
        f"<p>{_counted(len(study.policies), 'policy', 'policies')} ran in {_counted(len(study.windows), 'window')} "
        f"with {_counted(study.seeds_each, 'seed')}: {_counted(study.cases, 'case')} each, with the operator&#8217;s "
        "own planner. What only recommends was run as if it enforced.</p>"
    )
    yield from (f"<p>Done otherwise: {escape(sentence)}.</p>" for sentence in study.remarks)
    if study.left_out:
        yield f"<p>{_counted(len(study.left_out), 'window')} could not be used: see Windows left out.</p>"
    if study.baseline is not None and not still:
        yield f"<p>{escape(_gain(ranking, study.baseline))}</p>"
    yield f"<p>{escape(_grounds(ranking))}</p>"
    yield '<p><a href="#apply">The policy, ready to apply</a></p>'


def _gain(ranking: Ranking, baseline: str) -> str:
    own, still = ranking.of(ranking.recommended), ranking.of(baseline)
    imbalance, before = own.mean("imbalance_point_hours"), still.mean("imbalance_point_hours")
    change = f" ({imbalance / before - 1.0:+.0%})" if before > 0 else ""
    text = (
        f"Against {baseline}, which moves nothing, the imbalance goes from {before:.1f} to {imbalance:.1f} point-hours"
        f"{change}, at {own.mean('moves'):.1f} moves, in the mean over cases."
    )
    locality, was = own.mean("locality_cost"), still.mean("locality_cost")
    if isfinite(locality) and isfinite(was) and f"{locality:.2f}" != f"{was:.2f}":
        text += f" The cost of locality goes from {was:.2f} to {locality:.2f}."
    if own.never_level:
        text += f" The pool was still not level at the end of {own.never_level} of {_counted(own.cases, 'case')}."
    return text


def _grounds(ranking: Ranking) -> str:
    if len(ranking.as_good) == 1:
        return "The imbalance of every other policy is higher, in every case or by more than chance."
    others = ", ".join(policy for policy in ranking.as_good if policy != ranking.recommended)
    return f"Its imbalance can't be told from that of {others}; the rule below chose it."


def _ranking(study: Study, ranking: Ranking) -> Iterator[str]:
    yield "<h2>Ranking</h2>"
    yield f'<p class="soft">Mean ± half of the 95 % interval; less is better. {escape(METHOD)} {escape(RULE)}</p>'
    rows = [[Strong(cell) for cell in row] if row[0] == "1" else row for row in ranked(study, ranking, Format.WIDE)]
    meanings = "".join(f"<li><b>{escape(column)}</b>: {escape(words)}</li>" for column, words in EXPLAINED.items())
    yield f"<details open><summary>What the columns say</summary><ul>{meanings}</ul></details>"
    yield grid(ranked_columns(Format.WIDE), rows, text=("policy",))


def _plots(study: Study, ranking: Ranking, shown: Exhibits) -> Iterator[str]:
    chosen = shown.chosen
    yield "<h2>What each policy costs</h2>"
    yield '<p class="soft">Numbers are those of the ranking; lines are 95 % intervals.</p>'
    yield shown.pareto.markup
    yield "<h2>Imbalance over time</h2>"
    yield f'<p class="soft">{escape(_imbalance_words(study, chosen))}</p>'
    for window, plot in shown.imbalance.items():
        yield f"<h3>{escape(window)}</h3>{plot.markup}"
    yield "<h2>Moves</h2>"
    yield (
        f'<p class="soft">In {escape(chosen.window)}, seed {chosen.seed}; of each policy the first {MOST_MARKS} at '
        f"most.</p>{shown.moves.markup}"
    )
    yield from (_move_table(single(study, chosen, policy)) for policy in chosen.policies)
    yield from _nodes(ranking, shown, nodes=len(single(study, chosen, ranking.recommended).series.nodes))


def _imbalance_words(study: Study, chosen: Choice) -> str:
    text = "Standard deviation of the nodes' usage, in points: the mean over seeds"
    text += ", and all of them as a band; the other policies in gray." if study.seeds_each > 1 else "."
    if len(study.windows) > len(chosen.windows):
        text += f" Of {len(study.windows)} windows, those in which the recommended policy makes the most difference."
    if len(study.policies) > len(chosen.policies):
        text += f" Of {len(study.policies)} policies, the first of the ranking and what moves nothing."
    return text


def _move_table(result: Result) -> str:
    if not result.moves:
        return ""
    rows = [move_row(move) for move in result.moves[:MOST_MOVES]]
    more = f"<p>and {len(result.moves) - MOST_MOVES} more</p>" if len(result.moves) > MOST_MOVES else ""
    table = grid(MOVE_COLUMNS, rows, text=("executor", "from", "to", "outcome"))
    return f"<details><summary>Moves under {escape(result.case.policy)}</summary>{table}{more}</details>"


def _nodes(ranking: Ranking, shown: Exhibits, *, nodes: int) -> Iterator[str]:
    chosen = shown.chosen
    yield "<h2>Nodes, before and after</h2>"
    text = f"Scores in percent, in {chosen.window}, seed {chosen.seed}; moves as arrows."
    if nodes > MOST_ROWS:
        text += f" Of {nodes} nodes, {MOST_ROWS} are shown: those with moves, then those that vary most."
    yield f'<p class="soft">{escape(text)}</p>'
    if shown.before is not None:
        yield f"<h3>Before: {escape(chosen.before or '')}</h3>{shown.before.markup}"
    yield f"<h3>After: {escape(ranking.recommended)}</h3>{shown.after.markup}"


def _questions(study: Study, ranking: Ranking) -> Iterator[str]:
    yield "<h2>PIP-364&#8217;s five questions</h2>"
    yield '<p class="soft">Means over cases; less is better, and the best is bold.</p>'
    verdicts = {standing.policy: verdict(study.of(standing.policy)) for standing in ranking.standings}
    best = {question: min(getattr(each, question) for each in verdicts.values()) for question in QUESTIONS}
    rows = [[policy, *_answers(found, best, study.cases)] for policy, found in verdicts.items()]
    yield grid(("policy", *_ASKED), rows)
    asked = "".join(f"<li><b>{escape(question)}</b>: {escape(meaning)}</li>" for question, meaning in _ASKED.items())
    yield f"<details><summary>What is asked</summary><ul>{asked}</ul></details>"


def _answers(found: Verdict, best: Mapping[str, object], cases: int) -> list[str]:
    unleveled, rounds = found.slowness
    cells = [
        f"{found.points_left:.1f}",
        f"{found.needless_moves:.1f}",
        f"{found.wrong_placements:.1f}",
        f"{found.over_unloadings:.1f}",
        f"{'–' if unleveled == cases else f'{rounds:.1f}'}, {unleveled} of {cases}",
    ]
    return [
        Strong(cell) if getattr(found, question) == best[question] else cell
        for question, cell in zip(QUESTIONS, cells, strict=True)
    ]


def _left_out(study: Study) -> Iterator[str]:
    if study.left_out:
        yield "<h2>Windows left out</h2>"
        yield f"<ul>{''.join(f'<li>{escape(sentence)}</li>' for sentence in study.left_out_told)}</ul>"


def _unknown(study: Study) -> Iterator[str]:
    yield "<h2>What could not be known</h2>"
    if study.unknown:
        yield f"<ul>{''.join(f'<li>{escape(sentence)}</li>' for sentence in study.unknown)}</ul>"
    else:
        yield "<p>Nothing was missing: these windows are described in full.</p>"


def _to_apply(study: Study, ranking: Ranking) -> Iterator[str]:
    document = study.policies[ranking.recommended]
    yield '<h2 id="apply">Apply it</h2>'
    if not document["spec"].get("nodeSelector"):
        yield "<p>It holds for every node: name your pool&#8217;s in <code>nodeSelector</code>.</p>"
    mode = document["spec"].get("moves", {}).get("mode", MovesMode.RECOMMEND)
    if mode in (MovesMode.RECOMMEND, MovesMode.APPROVE):
        yield f"<p>With <code>moves.mode: {escape(mode)}</code>, as it stands here, it moves nothing by itself.</p>"
    yield "<p>Save this as <code>policy.yaml</code>, then <code>kubectl apply -f policy.yaml</code>.</p>"
    yield f'<pre tabindex="0">{escape(to_apply(study, ranking))}</pre>'


def to_apply(study: Study, ranking: Ranking) -> str:
    """The recommended policy as YAML."""
    return yaml.safe_dump(dict(study.policies[ranking.recommended]), sort_keys=False, allow_unicode=True)


def _counted(count: int, one: str, many: str = "") -> str:
    return f"1 {one}" if count == 1 else f"{count} {many or one + 's'}"
