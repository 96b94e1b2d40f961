from typing import Any

import numpy as np
from numpy.typing import NDArray

class Csr:
    def __init__(
        self,
        indptr: NDArray[np.int64],
        indices: NDArray[np.int32],
        values: NDArray[Any],
        n_columns: int,
        window: tuple[int, int] | None = None,
    ) -> None: ...
    def row_sums(self) -> NDArray[np.float64]: ...

class Dense:
    def __init__(self, values: NDArray[Any]) -> None: ...
    def row_sums(self) -> NDArray[np.float64]: ...

class BasisFloat32:
    def __init__(
        self,
        array: NDArray[np.float32],
        dense: bool,
        d: NDArray[np.float64] | None = None,
        prior: NDArray[np.float64] | None = None,
        fixed: NDArray[np.uint8] | None = None,
        ridge: NDArray[np.float64] | None = None,
    ) -> None: ...
    @property
    def column_sums(self) -> NDArray[np.float64]: ...

class BasisFloat64:
    def __init__(
        self,
        array: NDArray[np.float64],
        dense: bool,
        d: NDArray[np.float64] | None = None,
        prior: NDArray[np.float64] | None = None,
        fixed: NDArray[np.uint8] | None = None,
        ridge: NDArray[np.float64] | None = None,
    ) -> None: ...
    @property
    def column_sums(self) -> NDArray[np.float64]: ...

class EpochPlan:
    def __init__(
        self,
        *,
        step: float,
        full_step: float,
        batch: float,
        length: int,
        threshold: float,
        shortest: int,
        scheme: str,
        replace: bool,
        key: tuple[int, int],
        at_round: int,
        side: int,
        indptr: NDArray[np.int64] | None = None,
    ) -> None: ...

def level() -> str: ...
def gradient(*args: Any) -> None: ...
def sums(*args: Any) -> None: ...
def curvatures(*args: Any) -> None: ...
def divergence(*args: Any) -> None: ...
def gaps(*args: Any) -> None: ...
def certify(*args: Any) -> None: ...
def mu(*args: Any) -> None: ...
def power(*args: Any) -> None: ...
def power_search(*args: Any) -> None: ...
def coordinate(*args: Any) -> None: ...
def newton(*args: Any) -> None: ...
def shared_newton(*args: Any) -> None: ...
def projected_gradient(*args: Any) -> None: ...
def model_steps(*args: Any) -> None: ...
def solve_items(*args: Any) -> None: ...
def epoch(*args: Any) -> None: ...
def draw_batch(
    key: tuple[int, int], place: tuple[int, int, int, int], n: int, s: int, replace: bool
) -> NDArray[np.int32]: ...
def sample_float32(
    V: Csr,
    key: tuple[int, int],
    place: tuple[int, int, int, int],
    share: float,
    weighted: bool,
    replace: bool,
) -> tuple[NDArray[np.float32], NDArray[np.int32], NDArray[np.int64]]: ...
def sample_float64(
    V: Csr,
    key: tuple[int, int],
    place: tuple[int, int, int, int],
    share: float,
    weighted: bool,
    replace: bool,
) -> tuple[NDArray[np.float64], NDArray[np.int32], NDArray[np.int64]]: ...
def draw_uniform(
    key: tuple[int, int], place: tuple[int, int, int, int], n: int
) -> NDArray[np.float64]: ...
def parse_entries(
    text: bytes, indices: bool, values: bool, whole: bool, n_rows: int, n_columns: int
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[Any], int]: ...
