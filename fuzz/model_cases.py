# SPDX-License-Identifier: BSD-3-Clause
"""Random fits of the general model: data, parameters, and how the data were observed.

Data are the adversarial matrices of the tests. A case that is drawn is valid, except for those
combinations that `REFUSALS` names, which depend on the values of the data.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from properties.matrices import (
    CONTENTS,
    DENSE_LAYOUTS,
    DENSE_TYPES,
    SPARSE_LAYOUTS,
    SPARSE_TYPES,
    Recipe,
)
from sipower.nmf import SOLVERS

# Beginnings of the messages by which a valid case may be refused.
REFUSALS = (
    "No component may contain",
    "No entry is observed",
    "`components_zero` must be False for some feature",
    "`n_components` must be",
    "W is too large for float32",
)
GENERAL = ("auto", "ccd", "scd", "newton", "mu")  # solvers that take every term
SIZES = (8, 8, 30)
LARGE = 0.02  # share of the cases with several blocks of rows


@dataclass
class FitCase:
    """The arguments of a fit."""

    recipe: Recipe
    parameters: dict[str, Any] = field(default_factory=dict)
    observed: dict[str, Any] = field(default_factory=dict)
    start: dict[str, Any] = field(default_factory=dict)
    terms: set[str] = field(default_factory=set)

    def data(self) -> Any:
        """Return V as the user has it, with NaN where entries are missing."""
        V = self.recipe.matrix()
        if "missing" not in self.terms:
            return V
        V = self.recipe.values().astype(float)
        V[np.random.default_rng(self.recipe.seed).random(V.shape) < 0.2] = np.nan
        return V

    def weights(self, V: np.ndarray) -> np.ndarray:
        """Return the weight of every entry of V, zero where it is not observed."""
        omega = np.where(np.isnan(V), 0.0, 1.0)
        for name in ("mask", "weights"):
            if name in self.observed:
                part = self.observed[name]
                omega = omega * (_dense_weights(part) if sp.issparse(part) else part)
        if "sample_weight" in self.observed:
            omega = omega * self.observed["sample_weight"][:, None]
        return omega * self.observed.get("feature_weight", 1.0)


def _dense_weights(weights: Any) -> np.ndarray:
    """Return sparse weights as an array: entries that are not stored have weight 1."""
    dense = np.ones(weights.shape)
    coo = weights.tocoo()
    dense[coo.row, coo.col] = coo.data
    return dense


def draw_recipe(source: random.Random) -> Recipe:
    """Draw a matrix that a factorisation must accept."""
    layout = source.choice((*DENSE_LAYOUTS, *SPARSE_LAYOUTS, "C", "csr", "csr"))
    dtype = source.choice(SPARSE_TYPES if layout in SPARSE_LAYOUTS else DENSE_TYPES)
    most = source.choice(SIZES)
    rows, columns = source.randint(1, most), source.randint(1, most)
    if source.random() < LARGE:
        rows, columns = source.randint(200, 700), source.randint(10, 60)
    content = source.choice((*CONTENTS, "poisson", "poisson", "sparse"))
    return Recipe(rows, columns, content, dtype, layout, source.getrandbits(32))


def draw_case(source: random.Random) -> FitCase:
    """Draw a fit: half of them are plain, and half have terms of the general model."""
    recipe = draw_recipe(source)
    case = FitCase(recipe)
    rank = source.choice((1, 2, 3, source.randint(1, 12)))
    general = source.random() < 0.5
    solver = "auto" if source.random() < 0.5 else source.choice(GENERAL if general else SOLVERS)
    case.parameters = {
        "n_components": rank,
        "solver": solver,
        "tol": source.choice((0.0, 1e-3, 1e-6)),
        "max_iter": source.choice((1, 3, 10, 40)),
        "transform_tol": source.choice((1e-6, 1e-6, 1e-9)),
        "random_state": source.getrandbits(31),
        "dtype": source.choice((None, None, "float32", "float64")),
    }
    rng = np.random.default_rng(source.getrandbits(64))
    if general:
        _add_observation(case, source, rng)
        _add_terms(case, source, rng)
    _add_start(case, source, rng)
    return case


def _add_start(case: FitCase, source: random.Random, rng: np.random.Generator) -> None:
    """Choose among random, surplus, several, spectral and custom starts."""
    n, m, rank = case.recipe.rows, case.recipe.columns, case.parameters["n_components"]
    kind = source.choice(("random", "auto", "auto", "several", "nndsvda", "custom"))
    if "missing" in case.terms and kind == "nndsvda":
        kind = "auto"
    case.parameters["init"] = "auto" if kind == "several" else kind
    if kind == "nndsvda" and rank > min(n, m):
        case.parameters["init"] = "random"
    if kind == "several":
        case.parameters["n_init"] = source.randint(2, 4)
    if kind == "custom":
        case.start = {"W": rng.random((n, rank)) + 0.01, "H": rng.random((rank, m)) + 0.01}


def _add_observation(case: FitCase, source: random.Random, rng: np.random.Generator) -> None:
    """Choose weights, masks, size factors and batches."""
    shape = n, m = case.recipe.rows, case.recipe.columns
    sparse_weights = sp.csr_array(np.where(rng.random(shape) < 0.2, rng.gamma(1, 1, shape), 0))
    every: dict[str, Any] = {
        "mask": rng.random(shape) < 0.9,
        "weights": source.choice((rng.gamma(1.0, 1.0, shape), sparse_weights)),
        "sample_weight": rng.integers(0, 3, n) + source.choice((0.0, 0.5)),
        "feature_weight": rng.random(m) + 0.2,
        "offsets": rng.gamma(5.0, 0.2, n),
    }
    for name, value in every.items():
        has_any = name == "offsets" or bool(value.sum() if sp.issparse(value) else value.any())
        if source.random() < 0.25 and has_any:
            case.observed[name] = value
    mask = np.asarray(case.observed.get("mask", True)) & (case.weights(np.zeros(shape)) > 0)
    if not mask.any():
        case.observed = {}
    if n >= 4 and case.parameters["solver"] == "auto" and source.random() < 0.2:
        case.observed["batch"] = rng.permutation(np.arange(n) % source.randint(1, min(3, n // 2)))
    if source.random() < 0.1 and "mask" not in case.observed:
        case.terms.add("missing")
        case.parameters["missing"] = "nan"


def _add_terms(case: FitCase, source: random.Random, rng: np.random.Generator) -> None:
    """Choose known components, forbidden entries, and either prior counts or penalties."""
    m, rank = case.recipe.columns, case.parameters["n_components"]
    if source.random() < 0.25:
        case.terms.add("known")
        known = rng.gamma(1.0, 1.0, (source.randint(1, rank), m))
        case.parameters["components_fixed"] = known
    elif source.random() < 0.2:
        case.terms.add("forbidden")
        zero = rng.random((rank, m)) < 0.2
        zero[:, zero.all(axis=0)] = False
        case.parameters["components_zero"] = zero
    kind = source.choice(("none", "none", "W", "H", "both", "guides", "penalties"))
    if kind in ("W", "both"):
        case.parameters["prior_W"] = source.choice((0.1, 1.0))
    if kind in ("H", "both"):
        case.parameters["prior_H"] = source.choice((0.1, 1.0, rng.random(m)))
    if kind == "guides" and "known" not in case.terms:
        case.parameters["guides"] = {"first": [int(rng.integers(m))]}
    if kind == "penalties" and "batch" not in case.observed:
        case.parameters["alpha_W"] = source.choice((1e-3, 0.1))
        case.parameters["l1_ratio"] = source.choice((0.0, 0.5, 1.0))
    if kind != "none":
        case.terms.add(kind)
