# SPDX-License-Identifier: BSD-3-Clause
"""A corpus without a download: the docstrings of the installed numpy, scipy and scikit-learn."""

from __future__ import annotations

import ast
import inspect
import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

import numpy as np
import scipy
import sklearn
from scipy import sparse

# Tests, vendored projects and build tools say little about the library that contains them.
_SKIPPED = {"_lib", "_typing", "distutils", "externals", "f2py", "testing", "tests"}
_MIN_WORDS = 40
_MIN_DOCUMENTS = 3


@dataclass(frozen=True, eq=False)
class Corpus:
    """A bag of words: ``counts[i, j]`` is the count of ``words[j]`` in ``documents[i]``."""

    counts: sparse.csr_array[np.int32, tuple[int, int]]
    documents: tuple[str, ...]
    words: tuple[str, ...]


def docstrings() -> Corpus:
    """Count the words in the docstrings of the installed numpy, scipy and scikit-learn.

    Each public function, class and method with at least 40 words other than English stop words
    is a document; each word of three or more letters in at least three documents is a column.
    If several names have the same docstring, only the first is used.

    Returns
    -------
    Corpus
        About 3,400 documents and 6,700 words, both sorted; the numbers depend on the versions
        installed. Documents are named by the closest public package, such as ``scipy.linalg.svd``.

    Examples
    --------
    >>> from sipower.datasets import docstrings
    >>> corpus = docstrings()
    >>> corpus.counts.shape == (len(corpus.documents), len(corpus.words))
    True
    >>> "matrix" in corpus.words
    True
    """
    # Imported here, because it takes long to import and few users need it.
    from sklearn.feature_extraction.text import CountVectorizer  # noqa: PLC0415

    vectorizer = CountVectorizer(
        stop_words="english",
        token_pattern=r"[^\W\d_]{3,}",
        min_df=_MIN_DOCUMENTS,
        dtype=np.int32,
    )
    words_in = vectorizer.build_analyzer()
    texts = {name: text for name, text in _texts().items() if len(words_in(text)) >= _MIN_WORDS}
    counts = sparse.csr_array(vectorizer.fit_transform(texts.values()))
    counts.sum_duplicates()
    return Corpus(counts, tuple(texts), tuple(vectorizer.get_feature_names_out().tolist()))


def _texts() -> dict[str, str]:
    """Return a sorted map from public names to docstrings, without duplicate docstrings."""
    packages = (Path(inspect.getfile(package)).parent for package in (np, scipy, sklearn))
    pairs = [pair for package in packages for pair in _package_docstrings(package)]
    # If two objects have the same public name, `dict` keeps the later pair: the longer text.
    longest = dict(sorted(pairs, key=lambda pair: (pair[0], len(pair[1]), pair[1])))
    first_name = {text: name for name, text in reversed(longest.items())}
    return dict(sorted((name, text) for text, name in first_name.items()))


def _package_docstrings(package: Path) -> Iterator[tuple[str, str]]:
    for file in package.rglob("*.py"):
        module = file.relative_to(package.parent).with_suffix("").parts
        if _SKIPPED.isdisjoint(module):
            tree = _parse(file)
            yield from _definitions(tree, _public_package(module))
            yield from _assigned_docstrings(tree, _public_package(module))


def _parse(file: Path) -> ast.Module:
    with warnings.catch_warnings():
        # Newer Python versions warn about older sources, which users cannot change.
        warnings.simplefilter("ignore")
        return ast.parse(file.read_bytes())


def _public_package(module: tuple[str, ...]) -> str:
    """Return the public package that exports the names of a private module."""
    return ".".join(takewhile(lambda part: not part.startswith("_"), module))


def _definitions(parent: ast.Module | ast.ClassDef, prefix: str) -> Iterator[tuple[str, str]]:
    """Yield name and docstring of the public functions, classes and methods in `parent`."""
    for node in parent.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            name = f"{prefix}.{node.name}"
            yield name, ast.get_docstring(node) or ""
            if isinstance(node, ast.ClassDef):
                yield from _definitions(node, name)


def _assigned_docstrings(tree: ast.Module, prefix: str) -> Iterator[tuple[str, str]]:
    """Yield name and docstring of compiled objects documented by ``add_newdoc`` calls."""
    for statement in tree.body:
        match statement:
            case ast.Expr(ast.Call(ast.Name("add_newdoc"), arguments)):
                # Names and texts that are computed are not literals and are skipped.
                with suppress(ValueError):
                    yield from _newdoc_pairs(ast.literal_eval(ast.Tuple(arguments)), prefix)


def _newdoc_pairs(arguments: tuple[object, ...], prefix: str) -> Iterator[tuple[str, str]]:
    match arguments:
        case (str(name), str(text)):
            names = [name]
        case (str(place), str(name), str(text)):
            prefix, names = _public_package(tuple(place.split("."))), [name]
        case (str(place), str(name), (str(attribute), str(text))):
            prefix, names = _public_package(tuple(place.split("."))), [name, attribute]
        case _:
            return
    if not any(name.startswith("_") for name in names):
        yield ".".join([prefix, *names]), inspect.cleandoc(text)
