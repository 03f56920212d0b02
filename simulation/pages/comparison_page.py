"""The page of a comparison: which protocol, and at what price."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from operator import attrgetter
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from dprec.accounting import LEAST_TRUST_FIRST
from dprec.errors import plural
from simulation.analysis.answer import Answer, answer_to, price
from simulation.analysis.columns import (
    RUNS,
    ResultColumn,
    every_column,
    figure_column,
    headline_columns,
    headline_rows,
    text_column,
)
from simulation.analysis.decision import GridCell, decision_grid
from simulation.analysis.gains import (
    NOTHING_SENT,
    POPULARITY,
    SETS_ONLY,
    baseline_in_words,
    gain_digits,
    nothing_sent,
    same_figures,
    strongest,
)
from simulation.analysis.groups import read_groups
from simulation.analysis.populations import (
    PopulationCourse,
    comparison_projections,
    courses,
    notes_on_delta,
    reference_traffic,
    users_needed,
)
from simulation.analysis.protocol_results import (
    BYTES,
    ComparisonFiles,
    Evaluation,
    ProtocolResult,
    at_reference,
    by_evaluation,
    declared_in_comparison,
    distinguishing_words,
    reference_budget,
    reference_in_words,
)
from simulation.analysis.samples import reversed_by_samples
from simulation.analysis.vocabulary import (
    DASH,
    QUICK_IN_WORDS,
    data_in_words,
    grouped_by,
    listed,
    number,
    protected,
)
from simulation.configuration.strict_yaml import at
from simulation.pages.comparison_figures import (
    EpsilonAxis,
    accuracy_plot,
    population_plot,
    spreads_plot,
)
from simulation.pages.drawing import Draw, Plot
from simulation.pages.looks import SERIES, Looks, looks_of
from simulation.pages.noise import noise_of_comparison
from simulation.pages.officer import MOST_ASKED, Subject, officer_section
from simulation.pages.page import Section, bullets, page, table
from simulation.pages.sections import (
    HOW_TO_PROJECT,
    attack_section,
    attacks_on,
    groups_section,
    projection_section,
)
from simulation.storage.column import Column
from simulation.storage.columns import PER_DEVICE, figure
from simulation.storage.directories import REPORT


@dataclass(frozen=True, eq=False)
class PagePart:
    """One thing that is predicted, which shares no table and no axis with others of a comparison."""

    files: ComparisonFiles
    evaluation: Evaluation
    results: Sequence[ProtocolResult]
    looks: Looks
    """Of all protocols of the page."""
    words: str
    """What distinguishes it from the others of the page, in brackets; empty if there is one only."""
    suffix: str
    """The same, in anchors and in the names of files."""

    @cached_property
    def courses(self) -> list[PopulationCourse]:
        """How its protocols do with other numbers of users."""
        return courses([*self.results, *self.files.populations], self.evaluation.metric)

    @cached_property
    def answer(self) -> Answer:
        """What the comparison answers of it."""
        files, metric = self.files, self.evaluation.metric
        unit, delta = files.matched_unit, files.matched_delta
        return answer_to(self.results, metric, unit, delta, waiting=files.waiting)

    @cached_property
    def grid(self) -> list[GridCell]:
        """The protocol to take for all that is protected, first what the answer names first."""
        files, metric, unit = self.files, self.evaluation.metric, self.files.matched_unit
        if files.waiting:
            return []
        # Where every promise is compared, every one has an answer.
        models = LEAST_TRUST_FIRST if files.config.get("promises") else ()
        delta, epsilons = files.matched_delta, files.epsilons
        cells = decision_grid(self.results, metric, unit, delta, epsilons=epsilons, models=models)
        first = self.answer.cells[0].hides if self.answer.cells else True
        return sorted(cells, key=lambda cell: cell.hides is not first)

    @property
    def answered(self) -> list[ProtocolResult]:
        """What the answer takes, then the grid at the reference budget; nothing that nothing sent beats."""
        budget = reference_budget(self.results)
        cells = (*self.answer.cells, *(cell for cell in self.grid if cell.epsilon == budget))
        taken = (cell.best for cell in cells if not cell.nothing_sent_wins)
        return list({id(result): result for result in taken if result}.values())

    @cached_property
    def popularity(self) -> float | None:
        """What lists reach that are the same for everybody; None where they were not run."""
        popular = strongest(self.results, POPULARITY)
        return None if popular is None else popular.mean(self.evaluation.metric.column)

    def worth_it(self, cell: GridCell) -> bool:
        """Return whether what is best is better than nothing sent, and no worse than popularity."""
        reached = None if cell.best is None else cell.best.mean(self.evaluation.metric.column)
        if reached is None or cell.nothing_sent_wins:
            return False
        return self.popularity is None or not self.evaluation.metric.better(self.popularity, reached)

    def anchor(self, result: ProtocolResult) -> str:
        """Return the anchor of the row of a result."""
        return f"row{self.suffix}-{self.results.index(result)}"

    def link(self, result: ProtocolResult, words: str) -> Markup:
        """Return a link to the row of a result."""
        return Markup('<a href="#{}">{}</a>').format(self.anchor(result), words)

    def plot(self) -> Plot | None:
        """Return the plot of accuracy against epsilon and bytes."""
        requested = any(result.falls_short for result in self.results)
        lists = all(result.lists for result in self.results)
        unit = self.files.matched_unit
        mixed = unit != "user" and any(result.asked_otherwise(unit) for result in self.results)
        axis = EpsilonAxis(unit, self.files.matched_delta, requested, lists, mixed)
        recommended = [result.name for result in self.answered]
        return accuracy_plot(self.results, self.evaluation.metric, axis, self.looks, self.suffix, recommended)


def parts_of(files: ComparisonFiles) -> list[PagePart]:
    """Return the parts of a comparison, the main one first; none where no accuracy was measured."""
    groups, looks = by_evaluation(files.results), looks_of(files.results)
    parts: list[PagePart] = []
    for evaluation, results in groups.items():
        words = distinguishing_words(evaluation, list(groups))
        # Whatever a table holds, a figure stays in its directory, and has it to itself.
        suffix = "".join("-" + re.sub(r"[^a-z0-9]+", "-", word.lower()).strip("-") for word in words)
        suffix += f"-{len(parts) + 1}" if suffix in {part.suffix for part in parts} else ""
        in_brackets = f" ({', '.join(words)})" if words else ""
        parts.append(PagePart(files, evaluation, results, looks, in_brackets, suffix))
    return parts


def comparison_page(files: ComparisonFiles, population: float | None, draw: Draw) -> str:
    """Return the page of a comparison."""
    looks, traffic, parts = looks_of(files.results), reference_traffic(files), parts_of(files)
    # The table of groups has the protocols at the reference budget.
    results = [result for result in at_reference(files.results) if result.baseline in (None, SETS_ONLY)]
    protocols = {(result.name, result.budget) for result in results}
    groups = [line for line in read_groups(files.directory) if (line.name, line.epsilon) in protocols]
    projected = comparison_projections(traffic, population) if population else []
    silent = f"{DASH} The runs themselves are not in this directory."
    users = spreads_plot(traffic, looks, reference_in_words(files.results))
    title = str(files.config.get("title") or files.config.get("name") or files.directory.name)
    return page(
        title,
        "dprec comparison",
        _in_words(files),
        [_answer(part) for part in parts],
        _first_notes(files),
        [
            *(_officer(part) for part in parts),
            *(section for part in parts for section in _sections(part)),
            attack_section(attacks_on(files.results)),
            groups_section(groups),
            Section(
                "users-section",
                "How users differ",
                (users or (f"{DASH} No loss per user is bounded here." if traffic else silent),),
            ),
            Section("noise-section", "Noise of the mechanisms", tuple(noise_of_comparison(files, looks))),
            *_published_section(files),
            *([projection_section(projected, population)] if population else []),
            _notes_section(files, parts),
            _provenance(files, projected=population is not None),
        ],
        draw,
    )


def _in_words(files: ComparisonFiles) -> str:
    """Describe a comparison, and how far one is that runs or was interrupted."""
    results = files.results
    names = list(dict.fromkeys(result.name for result in results if result.baseline is None))
    baselines = {result.name for result in results if result.baseline}
    budgets = sorted({result.budget for result in results if result.budget is not None})
    runs = [row for result in results for row in result.rows]
    seeds, folds = ({str(row[key]) for row in runs if row.get(key) is not None} for key in ("seed", "fold"))
    at_budgets = ""
    if budgets:
        values = listed(f"{budget:g}" for budget in budgets)
        at_budgets = f" at {plural(len(budgets), 'budget')}, ε = {values} per {files.unit_in_words},"
    beside = f" beside {plural(len(baselines), 'baseline')}" if baselines else ""
    repeats = (plural(len(numbers), word) for numbers, word in ((seeds, "seed"), (folds, "fold")) if numbers)
    sets = " and ".join(dict.fromkeys(str(row.get("dataset")) for row in runs))
    compared = f"{plural(len(names), 'protocol')}{beside}{at_budgets}"
    description = f"{compared} over {' and '.join(repeats)}: {plural(len(runs), 'run')} on {sets}."
    if files.unfinished:
        planned = len(files.config["cells"])
        description += (
            f" {planned - len(files.unfinished)} of {plural(planned, 'run')} are finished, without "
            f"{_few(files.unfinished)}: load the page again while it runs; after an interrupt, --resume goes "
            "on."
        )
    return description


def _answer(part: PagePart) -> Section:
    """Return what a comparison answers of one thing that is predicted: sentences, headline and grids."""
    taken = [cell.best for cell in part.answer.cells if part.worth_it(cell)]
    content = (*part.answer.sentences, _headline(part, taken), *_grids(part), part.plot())
    return Section(f"answer{part.suffix}", f"Answer{part.words}", content)


def _officer(part: PagePart) -> Section:
    """Return what a privacy officer asks of the protocols that are the answer."""
    files = part.files
    runs = ((result, files.cells(result)) for result in part.answered[:MOST_ASKED])
    subjects = [Subject(result, files.summary(cells[0]) if cells else None) for result, cells in runs]
    return officer_section(subjects, part.suffix, part.words)


def _sections(part: PagePart) -> Iterator[Section]:
    """Yield the sections on one thing that is predicted."""
    suffix, words = part.suffix, part.words
    markup = _results_table(part)
    yield Section(f"table{suffix}", f"All results: filter, sort, choose columns{words}", (markup,))
    metric, looks = part.evaluation.metric, part.looks
    needed = population_plot(part.courses, metric, looks, suffix)
    yield Section(f"needed{suffix}", f"How many users before it is worth it{words}", (needed,))


def _columns(part: PagePart) -> list[ResultColumn]:
    """Return the columns that answer most questions; the budget leads to the row with all the others."""
    budget, *others = headline_columns(part.results, part.evaluation.metric, part.files.matched_unit)
    links = {
        id(result): quote((folder / REPORT).relative_to(part.files.directory).as_posix())
        for result, folder in part.files.shown_cells
        if (folder / REPORT).is_file()
    }

    def name_cell(result: ProtocolResult) -> Markup:
        """Return the name with the colour of its line, as a link where its run has a page."""
        colour = part.looks[result.name].colour
        look = str(SERIES.index(colour)) if colour in SERIES else "reference"
        name: str = result.name
        if id(result) in links:
            name = Markup('<a href="{}">{}</a>').format(links[id(result)], name)
        words = "baseline" if result.baseline else "no privacy" if result.reference else ""
        words = "your own" if result.own else words
        kind = Markup(" <small>{}</small>").format(words) if words else ""
        return Markup('<span class="chip look-{}" aria-hidden="true"></span>{}{}').format(look, name, kind)

    name: ResultColumn = Column("protocol", holds=str, value=attrgetter("name"), text=name_cell)
    linked = replace(
        budget,
        unit=f"per {part.files.unit_in_words}",
        text=lambda result: part.link(result, budget.text(result)),
    )
    needed: ResultColumn = text_column("users needed", lambda result: users_needed(part.courses, result))
    return [name, linked, *others, *([needed] if part.courses else [])]


def _headline(part: PagePart, taken: Sequence[ProtocolResult | None]) -> Markup:
    """Return a row per protocol, at most ten, and where all others are; what the answer takes is marked."""
    headline, others = headline_rows(part.results, part.evaluation.metric)
    budget = reference_budget(part.results)
    unit = part.files.unit_in_words
    at_budget = "" if budget is None else f" at ε = {budget:g} per {unit}, or the nearest it has"

    def attributes(result: ProtocolResult) -> Mapping[str, str]:
        marked = "base" if result.baseline == NOTHING_SENT else "taken" if result in taken else ""
        return {"class": marked} if marked else {}

    rows = table(
        f"Each protocol{at_budget}; the most accurate first",
        _columns(part),
        headline,
        sortable=False,
        style="headline",
        attributes=attributes,
    )
    more = f"{len(others)} more protocols, and all " if others else "All "
    return rows + Markup('<p class="all"><a href="#table{}">{}{} results</a>, to filter and sort</p>').format(
        part.suffix, more, len(part.results)
    )


def _results_table(part: PagePart) -> Markup:
    """Return every figure of every result; at first the columns of the headline are shown."""
    first = _columns(part)
    titles = {column.title for column in first} | {"budget"}
    shown_figures = {figure for column in first for figure in column.figures}
    others = [
        column
        for column in every_column(part.evaluation.metric, part.results)
        if column.title not in titles and not (column.figures and shown_figures.issuperset(column.figures))
    ]
    timings = {
        (timing.name, timing.budget): timing for timing in part.files.timings if timing.population is None
    }

    def seconds(result: ProtocolResult, column: Column[Any], factor: float) -> float | None:
        timing = timings.get((result.name, result.budget))
        mean = None if timing is None else timing.mean(column)
        return None if mean is None else factor * mean

    server = figure(lambda run: run.time.server_s)
    timed: tuple[ResultColumn, ...] = (
        figure_column("device", "ms per user", lambda result: seconds(result, PER_DEVICE, 1000), 3),
        figure_column("server", "s", lambda result: seconds(result, server, 1), 2),
    )
    return table(
        "Means over seeds and folds; ε is the largest proved of any run",
        [*first, *others, *timed, RUNS],
        part.results,
        first_shown=len(first),
        attributes=lambda result: {"id": part.anchor(result)},
    )


def _grids(part: PagePart) -> Iterator[Markup]:
    """Yield a table for what is protected, with a row per trust model and a column per epsilon."""
    unit, all_promises = part.files.matched_unit, bool(part.files.config.get("promises"))
    beaten = nothing_sent(part.results)
    compared_with = f", held against {baseline_in_words(beaten)}" if beaten else ""
    for hides, cells in groupby(part.grid, key=lambda cell: cell.hides):
        by_model = [list(row) for _, row in groupby(cells, key=lambda cell: cell.trust)]
        rows = [
            row for row in by_model if any(cell.best or (all_promises and cell.with_less) for cell in row)
        ]
        if rows:
            deltas = {f" with δ = {cell.delta:g}" for row in rows for cell in row if cell.delta is not None}
            trust: Column[list[GridCell]] = Column("trust", holds=str, text=_trusted)
            columns = [trust, *(_at_epsilon(place, cell, part) for place, cell in enumerate(rows[0]))]
            protection = protected(unit, hides, lists=any(result.lists for result in part.results))
            caption = f"The protocol to take{compared_with}: ε for {protection}{', or'.join(sorted(deltas))}"
            yield table(caption, columns, rows, sortable=False, style="grid")


def _trusted(row: Sequence[GridCell]) -> Markup:
    trust = row[0].trust
    worth = [cell for cell in row if cell.best and not cell.nothing_sent_wins]
    vain = trust != "local" and bool(worth) and all(cell.with_less for cell in worth)
    words = Markup("<small>more trust is no more accurate here</small>") if vain else ""
    return Markup("{}{}").format(f"{trust} model", words)


def _at_epsilon(place: int, first: GridCell, part: PagePart) -> Column[list[GridCell]]:
    """Return the column of one epsilon: the protocol to take, what it gains, what it costs and needs."""
    metric = part.evaluation.metric

    def text(row: Sequence[GridCell]) -> Markup:
        cell, best = row[place], row[place].best
        if best is None and cell.with_less:
            local = part.link(cell.with_less, cell.with_less.name)
            words = f"none that needs more trust is more accurate ({cell.with_less.trust})"
            if cell.with_less.trust == cell.trust:
                words = "it hides item sets as well"
            return Markup("<div>{}<small>{}</small></div>").format(local, words)
        if best is None:
            return Markup('<span class="dash">{}</span>').format(DASH)
        accuracy = f"{metric.label} {number(best.mean(metric.column), gain_digits(metric))}"
        details = [", ".join([accuracy, *([cell.against.written] if cell.against else [])])]
        if not cell.nothing_sent_wins:
            details.append(price(best))
            needed = users_needed(part.courses, best)
            details += [f"needs {needed} users"] if needed else []
            less = cell.with_less
            details += [f"no more accurate than {less.name} ({less.trust})"] if less else []
            if part.popularity is not None and not part.worth_it(cell):
                popular = number(part.popularity, gain_digits(metric))
                details.append(f"worse than popularity, which has no privacy ({popular})")
        small = Markup("").join(Markup("<small>{}</small>").format(line) for line in details)
        vain = Markup('<div class="vain"><b>send nothing</b><small>nearest: {}</small>{}</div>')
        worth = Markup("<div><b>{}</b>{}</div>") if part.worth_it(cell) else Markup("<div>{}{}</div>")
        template = vain if cell.nothing_sent_wins else worth
        # That of the headline is found at a glance.
        if part.worth_it(cell) and cell == next(iter(part.answer.cells), None):
            template = Markup('<div class="taken"><b>{}</b>{}</div>')
        return template.format(part.link(best, best.name), small)

    return Column(f"ε {first.epsilon:g}", holds=str, text=text)


def _published_section(files: ComparisonFiles) -> list[Section]:
    """Return published costs of a round beside the measured ones, if the configuration lists any."""
    published = files.config.get("published")
    if not isinstance(published, list):
        return []
    results = {result.name: result for result in at_reference(files.results)}
    rounds = figure(lambda run: run.traffic.rounds)

    def measured(way: str, unit: str, column: Column[Any], digits: int = 0) -> Column[Any]:
        def a_round(line: Any) -> float | None:
            result = results.get(str(at(line, "label")))
            spent, count = (result.mean(counted) if result else None for counted in (column, rounds))
            return spent / count if spent is not None and count else None

        return figure_column(f"measured, {way}", unit, a_round, digits)

    columns: list[Column[Any]] = [
        text_column("protocol", lambda line: at(line, "label")),
        text_column("published, up", lambda line: at(line, "up"), "as printed"),
        measured("up", "payload bits per rating", figure(lambda run: run.traffic.payload_bits_per_rating), 2),
        measured(
            "up", "payload bytes per user", figure(lambda run: run.traffic.uplink.payload_mean_per_user)
        ),
        measured("up", "message bytes per user", BYTES[0]),
        text_column("published, down", lambda line: at(line, "down"), "as printed"),
        measured(
            "down", "payload bytes per user", figure(lambda run: run.traffic.downlink.payload_mean_per_user)
        ),
        measured("down", "message bytes per user", BYTES[1]),
        text_column("source", lambda line: at(line, "source")),
    ]
    words = "A payload is the encoded report alone; a message is everything that is sent."
    content = words, table("Cost of one round", columns, published)
    return [Section("published", "Published costs beside measured ones", content)]


_UNPROVED = "the ε is {} and not proved; tables hold what is proved, and figures have a †."

_MOST_NAMES = 4
"""Names that a note lists; of more, only their number is said."""


def _few(names: Sequence[str]) -> str:
    return listed(names[:_MOST_NAMES]) + (" and others" if len(names) > _MOST_NAMES else "")


def _first_notes(files: ComparisonFiles) -> list[str]:
    """Return what a reader must know of the whole comparison."""
    bold = Markup("<strong>{}:</strong> {}")
    notes: list[str] = [bold.format("Quick", QUICK_IN_WORDS)] if files.config.get("quick") else []
    left_out = files.config.get("left_out")
    if isinstance(left_out, dict) and left_out:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in left_out.items())
        notes.append(bold.format("Left out", f"{reasons}."))
    unproved = grouped_by((result.word, result.name) for result in files.results if result.falls_short)
    for word, names in unproved.items():
        notes.append(bold.format(_few(list(dict.fromkeys(names))), _UNPROVED.format(word)))
    notes += [bold.format(name, words) for name, words in declared_in_comparison(files)]
    if files.matched_delta is not None:
        notes += notes_on_delta(files.matched_delta, files.populations)
    return [*notes, *(note for note, of_all in _notes_of_runs(files) if of_all)]


def _notes_section(files: ComparisonFiles, parts: Sequence[PagePart]) -> Section:
    """Return the section with what holds of some protocols, if there is any such note."""
    notes = [note for note, of_all in _notes_of_runs(files) if not of_all]
    notes += [note for part in parts for note in same_figures(part.results, part.evaluation.metric)]
    notes += [note for part in parts for note in reversed_by_samples(part.results)]
    return Section("notes-of-protocols", "Notes on protocols", (bullets(notes),))


def _notes_of_runs(files: ComparisonFiles) -> Iterator[tuple[str, bool]]:
    """Yield the notes of all runs, and whether they hold for every protocol, or every one with a budget.

    Of notes that differ in numbers alone, one stands for all.
    """
    merged = grouped_by(
        (re.sub(r"\d[\d.,]*", "#", note), (name, note))
        for name, summaries in files.summaries.items()
        for summary in summaries
        for note in summary.notes
    )
    results = files.results
    wholes = (
        ("Every protocol and every baseline", {result.name for result in results}),
        ("Every protocol", {result.name for result in results if not result.baseline}),
        ("Every protocol with a budget", {result.name for result in results if result.budget is not None}),
    )
    for pairs in merged.values():
        names, notes = ({pair[place]: None for pair in pairs} for place in (0, 1))
        covering = (
            (title, members) for title, members in wholes if len(members) > 1 and members <= set(names)
        )
        title, members = next(covering, ("", set()))
        whom = listed([*([title] if title else []), *(name for name in names if name not in members)])
        others = len(notes) - 1
        more = f" (With other numbers in {plural(others, 'more run')}.)" if others else ""
        yield Markup("<strong>{}:</strong> {}").format(whom, next(iter(notes)) + more), bool(title)


_FILES = Markup(
    '<p><a href="comparison.csv">comparison.csv</a> holds the figures of every run, timing.csv how long '
    "each took, cells/ the runs themselves, comparison.yaml the configuration, and "
    '<a href="figures/">figures/</a> the figures as SVG.</p>'
)


def _provenance(files: ComparisonFiles, *, projected: bool) -> Section:
    """Return what the ratings of a comparison were, and where everything is."""
    first = [results[0].rows[0] for results in by_evaluation(files.results).values()]
    people = dict.fromkeys(
        data_in_words({**row, "kind": row.get("dataset")}, lists=row.get("ndcg_at_10") not in (None, ""))
        for row in first
    )
    same_budget = f"Every protocol with a budget was given the same ε per {files.unit_in_words}."
    content = " ".join([*people, same_budget]), _FILES, "" if projected else HOW_TO_PROJECT
    return Section("provenance", "How it was made", content)
