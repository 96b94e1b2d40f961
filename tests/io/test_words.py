# SPDX-License-Identifier: BSD-3-Clause
"""Raw texts: lists, folders and columns become counts of words, with the settings beside them."""

import pandas as pd
import pytest
from sklearn.feature_extraction.text import CountVectorizer

from reading import held, refused
from sipower.io import ReadError, convert, open_store, read, read_texts
from sipower.io.words import DEFAULTS

TEXTS = ["A sparse matrix, sparse.", "the random sample", "The matrix of a sample"]


def expected(**options):
    vectorizer = CountVectorizer(**options)
    counts = vectorizer.fit_transform(TEXTS).toarray()
    return counts.tolist(), tuple(vectorizer.get_feature_names_out())


def assert_words(table, **options):
    assert (held(table).tolist(), table.features) == expected(**options)


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "corpus"
    (place / "more").mkdir(parents=True)
    for name, text in zip(("a", "b", "more/c"), TEXTS, strict=True):
        (place / f"{name}.txt").write_text(text)
    return place


def test_defaults_are_those_of_the_vectorizer():
    parameters = CountVectorizer().get_params()
    assert {name: parameters[name] for name in DEFAULTS} == DEFAULTS


@pytest.mark.parametrize("options", [{}, {"stop_words": "english", "min_df": 2}, {"binary": True}])
def test_a_list_of_texts_is_counted_by_the_vectorizer(options):
    table = read_texts(TEXTS, names=["x", "y", "z"], **options)
    assert_words(table, **options)
    assert table.samples == ("x", "y", "z")
    assert table.text_options == DEFAULTS | options
    assert "CountVectorizer (lowercase=True" in table.remarks[0]


def test_new_texts_are_counted_by_the_same_words():
    table = read_texts(TEXTS, stop_words="english")
    new = read_texts(
        ["Sparse MATRIX matrix unseen"], vocabulary=table.features, **table.text_options
    )
    assert new.features == table.features == ("matrix", "random", "sample", "sparse")
    assert held(new).tolist() == [[2, 0, 0, 1]]
    assert new.remarks[1] == "1 of 4 words in the texts are not in the vocabulary and left out."


def test_words_that_min_df_removes_are_remarked():
    assert "too rare or too frequent" in read_texts(TEXTS, min_df=2).remarks[1]


def test_a_folder_of_texts(folder):
    table = read(folder, text_options={"ngram_range": (1, 2)})
    assert_words(table, ngram_range=(1, 2))
    assert table.samples == ("a.txt", "b.txt", "more/c.txt")


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet"])
def test_a_column_of_texts(tmp_path, ending):
    frame = pd.DataFrame({"id": ["007", "8", "9"], "text": TEXTS, "stars": [1, 2, 3]})
    file = tmp_path / f"reviews.{ending}"
    if ending == "parquet":
        frame.to_parquet(file)
    else:
        frame.to_csv(file, index=False, sep="\t" if ending == "tsv" else ",")
    table = read(file, text_column="text")
    assert_words(table)
    assert table.samples == ("007", "8", "9")
    assert table.remarks[-1] == "The other columns are not used: stars."
    assert table.text_options == DEFAULTS | {"text_column": "text"}
    refused(file, "has no column 'body': its columns are id, text, stars", text_column="body")


def test_missing_texts_have_no_words(tmp_path):
    pd.DataFrame({"text": ["a word", None, "word"]}).to_parquet(tmp_path / "t.parquet")
    assert held(read(tmp_path / "t.parquet", text_column="text")).tolist() == [[1], [0], [1]]


def test_texts_become_a_store(folder, tmp_path):
    convert(folder, tmp_path / "words.sipower", text_options={"stop_words": "english"})
    store = open_store(tmp_path / "words.sipower")
    counts, words = expected(stop_words="english")
    assert tuple(store.column_names) == words
    assert store.column_mass.tolist() == [sum(column) for column in zip(*counts, strict=True)]


def test_refusals_of_texts_name_what_to_do(folder, tmp_path):
    with pytest.raises(ReadError, match=r"`texts` must be a list of texts, got 'corpus'.*read\("):
        read_texts("corpus")
    with pytest.raises(
        ReadError, match="`texts` must be strings, got a value of type float at row 1"
    ):
        read_texts(["a", float("nan")])
    with pytest.raises(ReadError, match="`names` must have 3 names, got 1"):
        read_texts(TEXTS, names=["x"])
    with pytest.raises(ReadError, match=r"`text_options` must be among lowercase.*got 'analyzer'"):
        read_texts(TEXTS, analyzer="char")
    refused(folder, "no words can be counted: .*min_df", text_options={"min_df": 9})
    refused(folder, "no words can be counted", text_options={"token_pattern": "(("})
    refused(folder, "no words can be counted", text_options={"ngram_range": 3})
    refused(folder, "is not a table: do not give a text_column", text_column="text")
    (folder / "b.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(ReadError, match=r"b\.txt is not UTF-8 text"):
        read(folder)
    (folder / "docword.kos.txt").write_text("1\n1\n1\n1 1 1\n")
    with pytest.raises(ReadError, match=r"docword\.kos\.txt is a bag of words: pass this file"):
        read(folder)
    (tmp_path / "empty").mkdir()
    refused(tmp_path / "empty", "is not a 10x folder: .*a folder of texts contains files.*txt")
    (tmp_path / "counts.csv").write_text("a,b\n1,2\n")
    refused(tmp_path / "counts.csv", "does not hold texts.*min_df", text_options={"min_df": 2})


def test_a_text_column_in_a_table_of_counts_names_the_remedy(tmp_path):
    file = tmp_path / "reviews.csv"
    file.write_text("id,stars,review,x\n1,5,good film,2\n2,1,a bad film,3\n")
    refused(file, r"line 2, column 'review': 'good film' .*drop the column.*text_column='review'")
    file.write_text("review\ngood film\na bad film\n")
    refused(file, "has names of samples and no counts: if they are texts.*text_column='review'")
    file.write_text(
        "review,stars\nthis was really a very good film,5\nI did not like it at all,1\n"
    )
    assert "if it holds texts, count their words by text_column='review'" in read(file).remarks[0]
