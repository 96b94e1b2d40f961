# SPDX-License-Identifier: BSD-3-Clause
"""The words, tables and empty plots of the page; `data` fills the plots."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from sipower.results.describe import Description, largest, total
from sipower.results.plot import palette
from sipower.results.report.text import Html, image, name, number, paragraph, table, text
from sipower.results.run import Run
from sipower.selection import Consensus, RankSelection

__all__ = [
    "components",
    "consensus",
    "convergence",
    "correlations",
    "images",
    "rank_selection",
    "samples",
    "summary",
]

IN_TABLE = 10  # features of a component

STATUS = {
    "converged": "The tolerance was reached.",
    "max_rounds": "The limit of rounds came before the tolerance.",
    "max_passes": "The limit of passes came before the tolerance.",
    "max_seconds": "The time limit came before the tolerance.",
    "stopped": "It was stopped as asked.",
    "interrupted": "It was interrupted; these are the factors of the last finished round.",
    "not_finite": "It met values that are not finite; these are the last factors that were.",
}


def section(key: str, title: str, *parts: object) -> Html:
    """A part of the page under its heading."""
    return Html(f'<section id="{key}"><h2>{text(title)}</h2>{"".join(map(text, parts))}</section>')


def plot(key: str, label: str) -> Html:
    """The place of a plot, and what it shows for those who cannot see it."""
    return Html(f'<div class="plot" id="{key}" role="img" aria-label="{text(label)}"></div>')


def choice(key: str, label: str, options: Iterable[tuple[str, str]]) -> Html:
    """A control that chooses one of several."""
    listed = "".join(f'<option value="{value}">{text(title)}</option>' for value, title in options)
    return Html(
        f'<label class="control">{text(label)} <select id="{key}">{listed}</select></label>'
    )


def summary(run: Run, about: Description) -> Html:
    """Size, status and the certificate in plain words."""
    facts, found = run.facts, run.facts.get("input") or {}
    cards = [
        ("samples", len(run.W)),
        ("features", len(about.overall)),
        ("components", len(about.sizes)),
        *((title, found.get(key)) for key, title in _COUNTED),
        *((title, facts.get(key)) for key, title in _MEASURED),
    ]
    listed = "".join(
        f"<div><dt>{title}</dt><dd>{number(value)}</dd></div>"
        for title, value in cards
        if value is not None
    )
    status = str(facts.get("status", ""))
    said = paragraph(Html(f"<strong>{text(status)}</strong>:"), STATUS.get(status, ""))
    words = (said if status else "", _certificate(run))
    return section("summary", "Summary", Html(f'<dl class="cards">{listed}</dl>'), *words)


_COUNTED = (("nonzeros", "nonzeros"), ("total", "sum of the counts"))
_MEASURED = (
    ("divergence", "KL divergence"),
    ("certified_gap", "certified gap"),
    ("rounds", "rounds"),
    ("seconds", "seconds"),
)


def _certificate(run: Run) -> Html:
    gap = run.facts.get("certified_gap")
    if gap is None or not np.isfinite(gap):
        return paragraph(
            "No gap of the final factors is recorded: nothing is certified about them."
        )
    return paragraph(
        f"The certified gap is {number(gap)}, as a share of the sum of the counts.",
        "It certifies that with W held fixed no other H, and with H held fixed no other W, would "
        f"lower the KL divergence by more than {number(gap * total(run))} ({gap:.2%} of the sum).",
        "It does not certify that no other pair of factors is better: the problem has several "
        "local minima, so another seed may end elsewhere. Nor does it say that the number of "
        "components is right.",
    )


def convergence(run: Run) -> Html:
    """Gap and objective over time and passes."""
    if not run.trace:
        return Html()
    note = paragraph(
        "Both curves are shares of the sum of the counts. The KL divergence is drawn above its "
        "lowest value, which is 0 and has no place on a logarithmic axis.",
        "One pass is one full gradient: 4·K operations for each nonzero.",
    )
    against = (("seconds", "seconds"), ("passes", "passes over the data"))
    control = choice("convergence-against", "Against", against)
    label = "Objective above its lowest value and certified gap, logarithmic"
    return section("convergence", "Convergence", note, control, plot("convergence-plot", label))


def components(run: Run, about: Description) -> Html:
    """Size, top and most distinctive features of each component, as a table to search and sort."""
    note = paragraph(
        "Components are numbered by size: 1 is the largest. The size is the share of all counts "
        "that a component explains.",
        "Lift (×) is how many times more probable a feature is in the component than overall. "
        "Distinctive features are both frequent in the component and more so than overall: they "
        "are ranked by p·log₂(lift), which sums to the component's information in bits.",
    )
    search = Html(
        '<label class="control">Search <input type="search" id="component-search" '
        'placeholder="feature or number" autocomplete="off"></label>'
        '<span id="component-count" role="status"></span>'
    )
    head = ("component", "size", "most probable", "most distinctive", "samples led", "information")
    rows = _component_rows(run, about)
    return section(
        "components", "Components", note,
        plot("size-plot", "Sizes of the components"), Html(f'<div class="row">{search}</div>'),
        table("Components", head, rows, id="component-table"),
        Html('<h3>Features of one component</h3><div class="row">'),
        choice("feature-component", "Component", _numbered(about)),
        choice("feature-rank", "Features", (("probable", "most probable"), _DISTINCTIVE)),
        Html("</div>"), plot("feature-plot", "Features of the chosen component"),
    )  # fmt: skip


_DISTINCTIVE = ("distinctive", "most distinctive")


def _numbered(about: Description) -> list[tuple[str, str]]:
    return [(str(k), str(k + 1)) for k in range(len(about.sizes))]


def _component_rows(run: Run, about: Description) -> Iterable[tuple[Any, ...]]:
    names, lift, telling, led = (
        run.feature_names(), about.lift(), about.distinctiveness(), about.led(),
    )  # fmt: skip
    for k, colour in enumerate(palette(len(about.sizes))):
        probable = (
            (names[f], f"{about.profiles[k, f]:.2%}") for f in largest(about.profiles[k], IN_TABLE)
        )
        distinctive = ((names[f], f"×{lift[k, f]:.3g}") for f in largest(telling[k], IN_TABLE))
        bits = telling[k].sum()
        yield (
            (k + 1, Html(f"{_chip(colour)}{k + 1}")),
            (about.sizes[k], f"{about.sizes[k]:.2%}"),
            _listed(probable),
            _listed(distinctive),
            (led[k], f"{led[k]:,}"),
            (bits, f"{bits:.2f} bits"),
        )


def _listed(features: Iterable[tuple[str, str]]) -> Html:
    items = (f"<li>{name(feature)} <small>{value}</small></li>" for feature, value in features)
    return Html(f'<ul class="features">{"".join(items)}</ul>')


def _chip(colour: str) -> Html:
    return Html(f'<span class="chip" style="background:{colour}"></span>')


def images(about: Description, shape: tuple[int, int]) -> Html:
    """The profiles as pictures."""
    pictures = (
        f"<figure>{image(profile.reshape(shape), f'Profile of component {k}')}"
        f"<figcaption>{k} <small>{size:.1%}</small></figcaption></figure>"
        for k, (profile, size) in enumerate(zip(about.profiles, about.sizes, strict=True), start=1)
    )
    note = paragraph("Each picture runs from 0 (black) to its own largest probability (white).")
    gallery = Html(f'<div class="gallery">{"".join(pictures)}</div>')
    return section("images", "Components as images", note, gallery)


def samples(run: Run, about: Description, drawn: int) -> Html:
    """The structure plot and its control."""
    which = (
        f"All {drawn:,} samples are drawn."
        if drawn == len(run.W)
        else f"{drawn:,} of the {len(run.W):,} samples are drawn, evenly chosen from first to last."
    )
    note = paragraph(
        "Each sample is a bar, cut into the shares of its counts that the components explain.",
        which,
        "By similarity, neighbours have similar shares (Ward's tree of Hellinger distances).",
    )
    orders = [("similar", "similarity"), ("file", "file order")]
    orders += [(key, f"component {number}") for key, number in _numbered(about)]
    legend = "".join(
        f"<li>{_chip(colour)}{k}</li>" for k, colour in enumerate(palette(len(about.sizes)), 1)
    )
    return section(
        "samples", "Samples", note, choice("sample-order", "Order by", orders),
        plot("sample-plot", "Shares of the components in each sample, stacked"),
        Html(f'<ul class="legend" aria-label="Colours of the components">{legend}</ul>'),
    )  # fmt: skip


def correlations(about: Description) -> Html:
    """Which components go together; a single one has no company."""
    if len(about.sizes) < 2:
        return Html()
    note = paragraph(
        "Over samples: components that occur in the same samples. Shares of a sample sum to 1, "
        "so a large component is negatively correlated with most others. Over features: "
        "components with similar profiles. Two that agree in both may be one that was split.",
    )
    over = choice("correlation-over", "Over", (("samples", "samples"), ("features", "features")))
    drawn = plot("correlation-plot", "Correlations between components")
    return section("correlations", "Correlations", note, over, drawn)


def rank_selection(selection: RankSelection) -> Html:
    """Held-out deviance and stability over the rank."""
    held_out = {
        "thinning": "Each count is held out with a fixed probability (Poisson thinning).",
        "bi-cross-validation": "Blocks of rows and columns are held out (bi-cross-validation).",
    }
    note = paragraph(
        Html(f"<strong>Recommended: {text(selection.best)}.</strong>"), selection.reason,
        held_out.get(selection.method, ""),
        "Dots are replicates. Stability is the mean cosine of matched components: 1 is best.",
    )  # fmt: skip
    drawn = plot("rank-plot", "Held-out deviance and stability over the number of components")
    return section("rank", "Number of components", note, drawn)


def consensus(found: Consensus) -> Html:
    """How far replicates from other starts agree."""
    note = paragraph(
        f"{len(found.similarity)} fits from different starts; number {found.medoid + 1} is nearest "
        "to all others. The stability of its components, numbered by size, is the mean cosine "
        "with their partners in the other fits: 1 is best.",
    )
    rows = (
        (
            f"{k}, the medoid" if k == found.medoid + 1 else k,
            number(divergence),
            number(gap),
            status,
        )
        for k, (divergence, gap, status) in enumerate(
            zip(found.divergences, found.gaps, found.statuses, strict=True), start=1
        )
    )
    return section(
        "consensus", "Consensus", note,
        plot("stability-plot", "Stability of each component over the replicates"),
        plot("similarity-plot", "Similarity of each pair of replicates"),
        table("Replicates", ("replicate", "KL divergence", "certified gap", "status"), rows),
    )  # fmt: skip
