# SPDX-License-Identifier: BSD-3-Clause
"""The values that the template of the report shows in text, tables and plots."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from sipower.estimators import KLNMF
from sipower.estimators.fingerprints import ARRAY
from sipower.inference import TopicQuality
from sipower.kernels import Array
from sipower.results import describe
from sipower.results.describe import Description, Indices
from sipower.results.plot import palette
from sipower.results.run import Run
from sipower.selection import Consensus, RankSelection

FEATURES_IN_TABLE, FEATURES_IN_PLOT = 10, 25  # per component
NAME_LENGTH = 60
FEATURE_SCORES = (  # names of `Description.scores` and their titles
    ("probability", "most probable"),
    ("frex", "most distinctive"),
    ("information", "most informative"),
)
Z_SCORE = ("z_score", "highest z-scores")  # offered if the run has spectra
SHARES = 10_000  # shares of a sample are stored as integers in units of 1 / SHARES

STATUS = {
    "converged": "The tolerance was reached.",
    "max_rounds": "The limit on rounds was reached before the tolerance.",
    "max_passes": "The limit on passes was reached before the tolerance.",
    "max_seconds": "The time limit was reached before the tolerance.",
    "stopped": "A callback stopped the fit.",
    "interrupted": "The fit was interrupted; these are the factors of the last finished round.",
    "stalled": "The objective no longer fell, although the tolerance was not reached.",
    "working_precision": "The objective no longer fell in float32; use float64.",
    "not_verified": "The verifier contradicts the certificate of the solver: do not rely on this.",
    "not_finite": "The fit met values that are not finite; these are the last finite factors.",
}
HELD_OUT = {
    "thinning": "Each count is held out with a fixed probability (Poisson thinning).",
    "bi-cross-validation": "Blocks of rows and columns are held out (bi-cross-validation).",
}
INPUT_CARDS = {"nonzeros": "nonzeros", "total": "sum of the counts"}
SHOWN_ELSEWHERE = ("format", "sipower", "remarks", "guides", "coherence", "whole_numbers")
RUN_CARDS = {
    "divergence": "KL divergence",
    "certified_gap": "certified gap",
    "rounds": "rounds",
    "seconds": "seconds",
}


def content(run: Run, about: Description, excluded: Array) -> dict[str, Any]:
    """Return the values that the template shows in text and tables.

    Features for which `excluded` is true are not listed.
    """
    facts, data = run.facts, run.facts.get("input") or {}
    gap = facts.get("certified_gap")
    cards: list[tuple[str, float | None]] = [("samples", len(run.W))]
    cards += [("features", len(about.overall)), ("components", len(about.sizes))]
    cards += [(title, data.get(key)) for key, title in INPUT_CARDS.items()]
    cards += [(title, facts.get(key)) for key, title in RUN_CARDS.items()]
    labels = [describe.readable(name, NAME_LENGTH) for name in about.components]
    numbers = [(str(k), label) for k, label in enumerate(labels)]
    titles = [describe.readable(name, NAME_LENGTH) for name in run.component_labels()]
    orders = [("similar", "similarity"), ("file", "file order")]
    return {
        "cards": [(title, value) for title, value in cards if value is not None],
        "status": facts.get("status", ""),
        "status_in_words": STATUS.get(facts.get("status", ""), ""),
        "gap": gap if gap is not None and np.isfinite(gap) else None,
        "total": describe.total(run),
        "has_trace": bool(run.trace),
        "components": list(_components(run, about, excluded)),
        "has_spectra": run.spectra is not None,
        "excluded": int(excluded.sum()),
        "numbers": numbers,
        "scores": FEATURE_SCORES if run.spectra is None else (*FEATURE_SCORES, Z_SCORE),
        "orders": orders + [(str(k), title) for k, title in enumerate(titles)],
        "samples": len(run.W),
        "remarks": list(map(str, facts.get("remarks") or ())),
        "guides": list(map(str, facts.get("guides") or ())),
        "facts": list(_flatten({k: v for k, v in facts.items() if k not in SHOWN_ELSEWHERE})),
        "quality": None if about.quality is None else _quality(about.quality),
        "repeat": facts.get("command")
        or repeat_call(facts.get("parameters") or {}, facts.get("observed") or ()),
    }


def _components(run: Run, about: Description, excluded: Array) -> Iterator[dict[str, Any]]:
    """Yield the table row of each component."""
    names, lift = about.features, about.lift()
    bits = about.distinctiveness().sum(axis=1)
    probable_scores, frex = (np.where(excluded, 0, s) for s in (about.profiles, about.frex()))
    z_scores = np.zeros_like(frex)
    if run.spectra is not None:
        z_scores = np.where(excluded, 0, run.spectra.z_scores)
    leading = about.leading_samples()
    for k, colour in enumerate(palette(len(about.sizes))):
        probable, distinctive, marking = (
            describe.largest(scores[k], FEATURES_IN_TABLE)
            for scores in (probable_scores, frex, z_scores)
        )
        yield {
            "number": k + 1,
            "label": about.components[k],
            "colour": colour,
            "size": about.sizes[k],
            "probable": [(names[f], f"{about.profiles[k, f]:.2%}") for f in probable],
            "distinctive": [(names[f], f"×{lift[k, f]:.3g}") for f in distinctive],
            "marking": [(names[f], f"{z_scores[k, f]:.3g}") for f in marking],
            "leading": int(leading[k]),
            "bits": bits[k],
        }


def _quality(quality: TopicQuality) -> dict[str, Any]:
    """Return what the section on the quality of components shows."""
    few, _, median, _, many = quality.effective_quantiles().values()
    measures = zip(quality.npmi, quality.umass, quality.exclusivity, quality.frex, strict=True)
    return {
        "rows": list(measures),
        "n_top": quality.n_top,
        "cards": [
            ("mean NPMI", f"{quality.mean_npmi:.3f}"),
            ("diversity", f"{quality.diversity:.0%}"),
            ("mean exclusivity", f"{quality.exclusivity.mean():.0%}"),
            ("components per sample, median", f"{median:.1f}"),
            ("components per sample, 5% to 95%", f"{few:.1f} to {many:.1f}"),
        ],
    }


def images(about: Description, shape: tuple[int, int]) -> Iterator[dict[str, Any]]:
    """Yield the profiles as PNG images from 0 (black) to their largest value (white)."""
    from PIL import Image  # noqa: PLC0415 - optional

    for profile, size, label in zip(about.profiles, about.sizes, about.components, strict=True):
        brightest = max(profile.max(), np.finfo(np.float64).tiny)
        grey, file = np.rint(255 * profile / brightest).astype(np.uint8), io.BytesIO()
        Image.fromarray(grey.reshape(shape)).save(file, "png")
        png = base64.b64encode(file.getvalue()).decode()
        yield {"height": shape[0], "width": shape[1], "size": size, "png": png, "label": label}


def number(value: float) -> str:
    """Format a number with thousands separators, four digits or in scientific notation."""
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{int(value):,}"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}" if abs(value) >= 1e-3 else f"{value:.2e}"


def format_or_dash(value: float, form: str) -> str:
    """Format a number, or return a dash if it is not known."""
    return form % value if np.isfinite(value) else "–"


def repeat_call(parameters: dict[str, Any], observed: Iterable[str] = ()) -> str:
    """Return the Python call that repeats a run; V is the data with the recorded hash.

    `observed` are the names of the arguments of `fit` that were given. An array stands under the
    name of its parameter.
    """
    defaults = KLNMF().get_params()
    changed = ", ".join(
        f"{key}={key if str(value).startswith(f'{ARRAY} of') else repr(value)}"
        for key, value in parameters.items()
        if key in defaults and value != defaults[key]
    )
    if not changed:
        return ""
    given = ", ".join(["V", *(f"{name}={name}" for name in observed)])
    return (
        f"from sipower import KLNMF\n\nmodel = KLNMF({changed})\nW = model.fit_transform({given})"
    )


def _flatten(facts: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for key, value in facts.items():
        if isinstance(value, dict):
            yield from _flatten(value, f"{prefix}{key}: ")
        elif isinstance(value, list | tuple):
            yield f"{prefix}{key}", " × ".join(map(str, value))
        else:
            yield f"{prefix}{key}", str(value)


# ---- numbers for the plots -------------------------------------------------------------------


def plot_data(
    run: Run,
    about: Description,
    drawn: Indices,
    selection: RankSelection | None,
    consensus: Consensus | None,
) -> dict[str, Any]:
    """Return the data of all plots; a plot without data is left out."""
    data: dict[str, Any] = {
        "colours": palette(len(about.sizes)),
        "labels": [describe.readable(name, NAME_LENGTH) for name in about.components],
        "sizes": _numbers(about.sizes),
        "samples": _samples(run, about, drawn),
    }
    if run.trace:
        curves = describe.convergence(run).items()
        data["convergence"] = {key: _numbers(values, 6) for key, values in curves}
    if len(about.sizes) > 1:
        data["correlations"] = {
            "samples": _numbers(describe.correlations(about.memberships), 3),
            "features": _numbers(describe.correlations(about.profiles.T), 3),
        }
    if about.quality is not None:
        measures = about.quality.npmi, about.quality.exclusivity
        data["quality"] = dict(zip(("npmi", "exclusivity"), map(_numbers, measures), strict=True))
    if selection is not None:
        data["rank"] = {
            "ranks": selection.ranks,
            "deviance": _numbers(selection.deviance, 6),
            "stability": _numbers(selection.stability),
            "best": selection.best,
        }
    if consensus is not None:
        order = describe.describe(consensus.W, consensus.H).order
        data["consensus"] = {
            "stability": _numbers(consensus.stability[order]),
            "similarity": _numbers(consensus.similarity),
        }
    return data


def features(run: Run, about: Description, excluded: Array) -> list[dict[str, Any]]:
    """Return the features of each component that lead by each score, without excluded ones."""
    names, lift = about.features, about.lift()

    def feature_list(k: int, values: Array) -> dict[str, Any]:
        top = describe.largest(values, FEATURES_IN_PLOT)
        return {
            "names": [describe.readable(names[f], NAME_LENGTH) for f in top],
            "probability": _numbers(about.profiles[k, top]),
            "overall": _numbers(about.overall[top]),
            "lift": _numbers(lift[k, top]),
        }

    scores = {name: np.where(excluded, 0, about.scores(name)) for name, _ in FEATURE_SCORES}
    if run.spectra is not None:
        scores[Z_SCORE[0]] = np.where(excluded, 0, run.spectra.z_scores)
    return [
        {name: feature_list(k, values[k]) for name, values in scores.items()}
        for k in range(len(about.sizes))
    ]


def _samples(run: Run, about: Description, drawn: Indices) -> dict[str, Any]:
    names, memberships = run.sample_names(), about.memberships[drawn]
    return {
        "names": [describe.readable(names[i], NAME_LENGTH) for i in drawn],
        "shares": np.rint(SHARES * memberships.T).astype(int).tolist(),
        "whole": SHARES,
        "similar": describe.order_by_similarity(memberships).tolist(),
    }


def _numbers(values: Array, digits: int = 4) -> Any:
    """Return lists of numbers rounded to `digits` significant digits, with None for NaN and ∞."""
    if values.ndim > 1:
        return [_numbers(part, digits) for part in values]
    return [float(f"{value:.{digits}g}") if np.isfinite(value) else None for value in values]
