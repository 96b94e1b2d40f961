# SPDX-License-Identifier: BSD-3-Clause
from sipower import dask as dask
from sipower import datasets as datasets
from sipower import io as io
from sipower import nmf as nmf
from sipower import pl as pl
from sipower import problems as problems
from sipower import report as report
from sipower import results as results
from sipower import selection as selection
from sipower import tl as tl
from sipower.data.memory import Matrix as Matrix
from sipower.data.validate import as_matrix as as_matrix
from sipower.estimators import KLNMF as KLNMF
from sipower.estimators import LpPCA as LpPCA
from sipower.estimators import estimate as estimate
from sipower.estimators import non_negative_factorization as non_negative_factorization
from sipower.estimators import verify as verify
from sipower.inference import bootstrap as bootstrap
from sipower.inference import compare as compare
from sipower.inference import differential as differential
from sipower.inference import refit as refit
from sipower.inference import spectra as spectra
from sipower.inference import standard_errors as standard_errors
from sipower.inference import topic_quality as topic_quality
from sipower.kernels import instruction_set as instruction_set
from sipower.loop.check_problem import check_problem as check_problem
from sipower.loop.checkpoint import load_state as load_state
from sipower.loop.checkpoint import save_state as save_state
from sipower.loop.solve import Interrupted as Interrupted
from sipower.loop.solve import Record as Record
from sipower.loop.solve import Result as Result
from sipower.loop.solve import Status as Status
from sipower.loop.solve import Stop as Stop
from sipower.loop.solve import solve as solve
from sipower.problems.max_cut import max_cut as max_cut
from sipower.results.describe import describe as describe
from sipower.selection import consensus as consensus
from sipower.selection import rank_selection as rank_selection
from sipower.solvers import GaussianEM as GaussianEM
from sipower.solvers import Guarded as Guarded
from sipower.solvers import SciPi as SciPi
from sipower.solvers import SSciPi as SSciPi
from sipower.theory import diagnose as diagnose

__version__: str
__all__: list[str]
