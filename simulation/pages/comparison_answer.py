"""The answer at the top of a comparison's page: a sentence or two, a picture, and a row per protocol."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from simulation.analysis.answer import at_each_trust
from simulation.analysis.sentences import answer_sentences, trust_sentences
from simulation.pages.comparison_tables import headline_table
from simulation.pages.evaluation_parts import EvaluationPart
from simulation.pages.figures.rendering import Rendered
from simulation.pages.page import figures, render_template


def comparison_answer(parts: Sequence[EvaluationPart], picture: Rendered | None) -> Markup:
    """Return what a reader came for.

    Parameters
    ----------
    parts : sequence of EvaluationPart
        The main one first; its picture and its headline are shown, of the others the sentences.
    picture : Rendered or None
        Accuracy against epsilon.
    """
    main = parts[0]
    drawn = figures([picture], folded=True) if picture else None
    said = [(part, *_sentences(part)) for part in parts]
    return render_template(
        "comparison_answer.html",
        said=said,
        picture=drawn,
        headline=headline_table(main),
        several=len(parts) > 1,
    )


def _sentences(part: EvaluationPart) -> tuple[str, tuple[str, ...]]:
    """Return the first sentence, and those after it."""
    answer, files = part.answer, part.files
    if files.matched_unit == "user" and answer.budget is not None:
        delta = files.matched_delta
        at_trusts = at_each_trust(part.results, part.metric, budgets=[answer.budget], delta=delta)
        first, *others = trust_sentences(answer, at_trusts, delta)
    else:
        first, *others = answer_sentences(answer, files.matched_unit)
    return first, tuple(others)
