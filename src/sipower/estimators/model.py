# SPDX-License-Identifier: BSD-3-Clause
"""`Model`: the problem that a fit of `KLNMF` solves, with known components and batch effects."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from sipower.data.containers import as_numbers
from sipower.data.row_blocks import RowBlocks
from sipower.estimators.exact_rows import item_name
from sipower.estimators.fingerprints import fingerprint
from sipower.estimators.fit import Fit
from sipower.estimators.guides import Guide, GuideReport, as_guides, report_guides
from sipower.estimators.observation import as_boolean
from sipower.estimators.parameters import fit_rank, in_order, initial_point
from sipower.estimators.penalties import has_penalties, penalties
from sipower.estimators.prepared import Prepared
from sipower.estimators.prior import has_prior, prior_counts
from sipower.kernels import Array
from sipower.nmf import Factorization, Factors
from sipower.nmf.batch_effects import BatchFactorization, BatchFactors, centre
from sipower.nmf.prior_counts import PriorCounts
from sipower.nmf.terms import ModelTerms

__all__ = ["Model", "check_batches"]

NEGLIGIBLE = 1e-13  # share of the mass of every sample and every feature


@dataclass(frozen=True, eq=False)
class Model:
    """The model of a fit, in the scale of its weighted data (`Prepared`).

    Parameters
    ----------
    estimator
        The `KLNMF` whose parameters are used.
    prepared
        Weighted data, exposure and scales.
    seed
        Seed of the random numbers.
    """

    estimator: Any
    prepared: Prepared
    seed: int

    @property
    def V(self) -> RowBlocks:  # noqa: N802
        """The weighted data."""
        return self.prepared.V

    def start(self, W: Any, H: Any) -> Factors | None:
        """Return the start for the parameter `init`, or None if the solver draws a random one."""
        start = initial_point(self.estimator, self.V, self.seed, W, H)
        if start is None or self.estimator.init != "custom":
            return start
        return Factors(self.prepared.scale_rows(start.W), self.prepared.scale_columns(start.H))

    def problem(self, start: Factors | None) -> Factorization | BatchFactorization:
        """Return the problem to solve."""
        rank = fit_rank(self.estimator, self.V, start)
        terms = self.terms(rank)
        if terms.exposure is not None and terms.exposure.effects is not None:
            return BatchFactorization(self.V, rank, terms, self.estimator.batch_prior)
        return Factorization(self.V, rank, terms)

    def terms(self, rank: int) -> ModelTerms:
        """Return what the model has besides V, W and H."""
        fixed, values = self._fixed(rank)
        self._check_excluded(fixed, values)
        l1, ridge = penalties(self.estimator, self.prepared)
        prior = prior_counts(
            self.estimator, self.prepared, self.guides, fixed, self._known_count, rank
        )
        self._check_forbidden(fixed, values, prior)
        return ModelTerms(self.prepared.exposure, fixed, values, prior, l1, ridge)

    def check_parameters(self, rank: int) -> None:
        """Check what the parameters say about components, of which there are `rank`."""
        self._fixed(rank)
        prior_counts(self.estimator, self.prepared, self.guides, None, self._known_count, rank)

    def restore(self, result: Fit) -> Fit:
        """Return a fit in the scale of the user."""
        x = self.restore_point(result)
        return replace(result, W=x.W, H=x.H, effects=x.effects)

    def restore_point(self, x: Any) -> BatchFactors:
        """Return (W, H, β) in the scale of the user, with the bits of known components.

        Batch effects are centred, unless there are known components or prior counts: then H cannot
        be scaled.
        """
        exposure, effects = self.prepared.exposure, getattr(x, "effects", None)
        W, H = x.W, x.H
        has_scale = self._known_components is not None or has_prior(self.estimator)
        if effects is not None and not has_scale:
            assert exposure is not None
            assert exposure.batch is not None
            W, H, effects = centre(BatchFactors(W, H, effects), exposure.batch)
        W, H = self.prepared.restore_rows(W), self.prepared.restore_columns(H)
        if has_penalties(self.estimator):
            # A component that explains nothing, but for rounding errors, only adds to the penalty.
            is_used = np.maximum(_largest_shares(W, H), _largest_shares(H, W)) > NEGLIGIBLE
            W, H = W * is_used, H * is_used
        if self._known_components is not None:
            H = H.copy()
            H[:, : len(self._known_components)] = self._known_components.T
        return BatchFactors(W, H, effects)

    @cached_property
    def guides(self) -> list[Guide]:
        """The guides of the components that follow the known ones."""
        return as_guides(self.estimator.guides, self.V)

    def report_guides(self, H: Array) -> list[GuideReport]:
        """Return what fitted components H (K, m) say about the guides."""
        return report_guides(self.guides, self.V, H, self._known_count)

    @property
    def _known_count(self) -> int:
        return 0 if self._known_components is None else len(self._known_components)

    @cached_property
    def _known_components(self) -> Array | None:
        """The known components (at most K, m) in the working type, or None."""
        if self.estimator.components_fixed is None:
            return None
        features = self.V.shape[1]
        name, kind = "components_fixed", self.V.dtype
        fixed = in_order(self.estimator, name, self.V)
        known = np.array(as_numbers(name, fixed, "a dense array of numbers", kind), order="C")
        if known.ndim != 2 or known.shape[1] != features:
            raise ValueError(
                f"`components_fixed` must have one column for each of the {features} features, got "
                f"shape {known.shape}."
            )
        if not np.isfinite(known).all() or (known < 0).any():
            raise ValueError("`components_fixed` must be finite and non-negative.")
        if not known.any(axis=1).all():
            empty = int(np.argmin(known.any(axis=1)))
            raise ValueError(f"`components_fixed` must not contain zero rows, got row {empty}.")
        return known

    def _fixed(self, rank: int) -> tuple[Array | None, Array | None]:
        """Return which entries of H (m, K) are fixed, and their values."""
        zero, known = self.estimator.components_zero, self._known_components
        if zero is None and known is None:
            return None, None
        shape = rank, self.V.shape[1]
        fixed, values = np.zeros(shape, bool), np.zeros(shape, self.V.dtype)
        if zero is not None:
            zero = in_order(self.estimator, "components_zero", self.V)
            pattern = as_boolean("components_zero", zero)
            if pattern.dtype != bool or pattern.shape != shape:
                raise ValueError(
                    f"`components_zero` must be boolean with shape {shape}, got {pattern.dtype} "
                    f"with shape {pattern.shape}."
                )
            fixed |= pattern
        if known is not None:
            if len(known) > rank:
                raise ValueError(
                    f"`components_fixed` must have at most n_components = {rank} rows, got "
                    f"{len(known)}."
                )
            if (fixed[: len(known)] & (known > 0)).any():
                raise ValueError(
                    "`components_zero` must be False where `components_fixed` is positive."
                )
            fixed[: len(known)] = True
            values[: len(known)] = self.prepared.scale_columns(known.T).T
        return np.ascontiguousarray(fixed.T), np.ascontiguousarray(values.T)

    def _check_excluded(self, fixed: Array | None, values: Array | None) -> None:
        """Check that every feature with counts may be in some component."""
        if fixed is None or values is None:
            return
        excluded = fixed.all(axis=1) & ~values.any(axis=1) & (self.V.column_mass > 0)
        if excluded.any():
            feature = item_name("feature", int(np.argmax(excluded)), self.V.column_names)
            raise ValueError(
                f"No component may contain {feature}, but the data have counts of it: leave it out "
                "by `mask`, or change `components_fixed` or `components_zero`."
            )

    def _check_forbidden(
        self, fixed: Array | None, values: Array | None, prior: PriorCounts | None
    ) -> None:
        """Check that every component whose weights have prior counts may have some feature."""
        if fixed is None or values is None or prior is None or prior.rows is None:
            return
        counts = np.atleast_2d(prior.rows).sum(axis=0)
        empty = fixed.all(axis=0) & ~values.any(axis=0) & (counts > 0)
        if empty.any():
            raise ValueError(
                f"`components_zero` must be False for some feature of component "
                f"{int(np.argmax(empty))}, which has prior counts: allow a feature, or set its "
                "`prior_W` to 0."
            )

    @property
    def digest(self) -> str | None:
        """A fingerprint of everything but V that the result depends on; None: nothing is given."""
        estimator, exposure = self.estimator, self.prepared.exposure
        parts = [
            self.prepared.row_scale, self.prepared.column_scale,
            estimator.components_fixed, estimator.components_zero,
        ]  # fmt: skip
        if has_penalties(estimator):
            parts.append(f"{estimator.alpha_W} {estimator.alpha_H} {estimator.l1_ratio}")
        if has_prior(estimator):
            parts += [estimator.prior_W, estimator.prior_H, estimator.guide_strength]
            parts += [part for guide in self.guides for part in (guide.features, guide.weights)]
        if exposure is not None:
            prior = None if exposure.batch is None else estimator.batch_prior
            parts += [exposure.batch, prior, exposure.special]
        if all(part is None for part in parts):
            return None
        return fingerprint(["-" if part is None else fingerprint(part) for part in parts])


def _largest_shares(W: Array, H: Array) -> Array:
    """Return the largest share of every component in the mass of a row of W Hᵀ, (K,)."""
    mass = W * H.sum(axis=0, dtype=np.float64)
    total = mass.sum(axis=1, keepdims=True)
    shares: Array = np.divide(mass, total, out=np.zeros_like(mass), where=total > 0)
    return np.asarray(shares.max(axis=0))


def check_batches(batch: Array, estimator: Any) -> Array:
    """Return the labels of the batches, each of which must have at least two samples."""
    if estimator.solver != "auto":
        raise ValueError(f"`batch` needs solver='auto', got {estimator.solver!r}.")
    if has_penalties(estimator):
        raise ValueError("`batch` cannot be combined with `alpha_W` and `alpha_H`: leave one out.")
    labels, counts = np.unique(batch, return_counts=True)
    if (counts < 2).any():
        label = labels[int(np.argmin(counts))]
        raise ValueError(
            f"`batch` must have at least two samples in every batch, got one in {str(label)!r}: "
            "leave this sample out, or give it the label of a similar batch."
        )
    return labels
