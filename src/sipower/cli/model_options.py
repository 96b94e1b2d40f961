# SPDX-License-Identifier: BSD-3-Clause
"""Options of the model: how the data were observed, known components, guides and penalties."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from sipower.cli import options
from sipower.cli.application import require
from sipower.cli.console import Console, option_name
from sipower.cli.observed_files import DataItems, read_fixed, read_labels, read_numbers
from sipower.estimators import KLNMF
from sipower.io import Table, read_guides
from sipower.io.entry_values import read_mask, read_weights

_observed = partial(typer.Option, rich_help_panel="How the data were observed")
_model = partial(typer.Option, rich_help_panel="Model")
_FILE = "a table of names and values"
_SAMPLE_WEIGHT = f"Weights of samples: {_FILE}, or a column of obs."
_FEATURE_WEIGHT = f"Weights of features: {_FILE}, or a column of var."
_WEIGHTS = "Weights of entries: a dense matrix, or a table of sample, feature and weight."
_MASK = "Entries that were observed: a matrix that is not zero there, or a value per feature."
_OFFSETS = f"Size factors of samples: {_FILE}, or a column of obs."
_BATCH = "Batch of every sample: a table of names and labels, or a column of obs."
_FIXED = "Known components that keep their values: a table, or the folder of a run."
_BATCH_PRIOR = "Prior counts that shrink every batch effect to 1; 10 by default."
_PENALTY = "Penalty of {}, as in scikit-learn{}."
_PRIOR = "Prior counts of every entry of {}."
_GUIDES = "Features of guided components: .gmt, .json, or a table of guide, feature and weight."
_STRENGTH = "Prior counts of each guide; by default a hundredth of the counts per component."


@dataclass(frozen=True, kw_only=True)
class NewSampleOptions:
    """The options for how samples were observed, which `transform` has too."""

    feature_weight: Annotated[str | None, _observed(help=_FEATURE_WEIGHT)] = None
    weights: Annotated[Path | None, _observed(help=_WEIGHTS)] = None
    mask: Annotated[str | None, _observed(help=_MASK)] = None
    offsets: Annotated[str | None, _observed(help=_OFFSETS)] = None
    batch: Annotated[str | None, _observed(help=_BATCH)] = None

    def observed(
        self, data: options.InputOptions, table: Table, console: Console
    ) -> dict[str, Any]:
        """Read the files of the options and return arguments of `KLNMF.fit`."""
        items = DataItems(data, table)
        readers: dict[str, Any] = {
            "sample_weight": partial(read_numbers, items, "sample"),
            "feature_weight": partial(read_numbers, items, "feature"),
            "weights": lambda path: read_weights(path, items.samples, items.features),
            "mask": partial(_read_mask, items),
            "offsets": partial(read_numbers, items, "sample"),
            "batch": partial(read_labels, items),
        }
        arguments: dict[str, Any] = {}
        for name, reader in readers.items():
            value = getattr(self, name, None)
            if value is not None:
                arguments[name] = read_option(name, reader, value, console)
        return arguments


@dataclass(frozen=True, kw_only=True)
class SampleOptions(NewSampleOptions):
    """The options for how the samples of a fit were observed."""

    sample_weight: Annotated[str | None, _observed(help=_SAMPLE_WEIGHT)] = None


@dataclass(frozen=True, kw_only=True)
class ModelOptions(SampleOptions):
    """The options of the model, except its rank."""

    batch_prior: Annotated[float | None, _observed(help=_BATCH_PRIOR, min=0)] = None
    fixed: Annotated[Path | None, _model(help=_FIXED)] = None
    guides: Annotated[Path | None, _model(help=_GUIDES)] = None
    guide_strength: Annotated[float | None, _model(help=_STRENGTH, min=0)] = None
    alpha_w: Annotated[
        float, _model("--alpha-w", help=_PENALTY.format("W", "'s alpha_W"), min=0)
    ] = 0.0
    alpha_h: Annotated[
        float | None,
        _model("--alpha-h", help=_PENALTY.format("H", "; that of W by default"), min=0),
    ] = None
    l1_ratio: Annotated[float, _model(help="Share of L1 in the penalties.", min=0, max=1)] = 0.0
    prior_w: Annotated[float, _model("--prior-w", help=_PRIOR.format("W"), min=0)] = 0.0
    prior_h: Annotated[float, _model("--prior-h", help=_PRIOR.format("H"), min=0)] = 0.0

    def apply(
        self, model: KLNMF, data: options.InputOptions, table: Table, console: Console
    ) -> dict[str, Any]:
        """Set the parameters of a model, and return further arguments of its `fit`."""
        model.set_params(**self.parameters(data, table, console))
        return self.observed(data, table, console)

    def parameters(
        self, data: options.InputOptions, table: Table, console: Console
    ) -> dict[str, Any]:
        """Read the files of the options and return parameters of `KLNMF` that are not defaults."""
        given: dict[str, Any] = {
            "batch_prior": self.batch_prior, "alpha_W": self.alpha_w or None,
            "alpha_H": self.alpha_h, "l1_ratio": self.l1_ratio or None,
            "prior_W": self.prior_w or None, "prior_H": self.prior_h or None,
            "guide_strength": self.guide_strength,
        }  # fmt: skip
        if self.guides is not None:
            given["guides"] = read_option(
                "guides", lambda path: (read_guides(path), []), self.guides, console
            )
        if self.fixed is not None:
            require("pandas")
            reader = partial(read_fixed, DataItems(data, table))
            given["components_fixed"] = read_option("components_fixed", reader, self.fixed, console)
        return {name: value for name, value in given.items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class FitModelOptions(ModelOptions):
    """The `ModelOptions` with the rank."""

    components: options.Rank


def read_option(argument: str, reader: Any, value: Any, console: Console) -> Any:
    """Read the value of an option; errors begin with its name, and remarks are printed."""
    try:
        content, remarks = reader(value)
    except ValueError as problem:
        raise ValueError(f"{option_name(argument)}: {problem}") from None
    for remark in remarks:
        console.say(remark)
        console.event("remark", text=remark)
    return content


def _read_mask(items: DataItems, text: str) -> tuple[Any, list[str]]:
    """Read a mask from a file, or from a column of var."""
    if Path(text).is_file() or not items.has_columns:
        return read_mask(Path(text), items.samples, items.features)
    values, remarks = read_numbers(items, "feature", text)
    return values != 0, remarks
