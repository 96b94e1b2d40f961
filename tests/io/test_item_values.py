# SPDX-License-Identifier: BSD-3-Clause
"""Values, masks, weights and known components from files, matched to the data by name."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from sipower.io import ReadError
from sipower.io.entry_values import read_mask, read_weights
from sipower.io.item_values import Items, read_item_values
from sipower.io.known_components import read_known_components

SAMPLES = Items("sample", 3, ("s1", "s2", "s3"))
FEATURES = Items("feature", 4, ("a", "b", "c", "d"), ("ENSG1", "ENSG2", "ENSG3", "ENSG4"))
VALUES = [1.5, 0.0, 2.0]
MATRIX = np.array([[1.0, 0, 2, 1], [0, 1, 1, 1], [3, 1, 0.5, 0]])


def test_values_are_matched_by_name_or_by_order(tmp_path) -> None:
    frame = pd.DataFrame({"name": ["s3", "s1", "s2"], "value": [2.0, 1.5, 0.0]})
    frame.to_csv(tmp_path / "v.csv", index=False)
    frame.to_csv(tmp_path / "v.tsv", index=False, sep="\t")
    frame.to_csv(tmp_path / "bare.csv", index=False, header=False)
    pd.Series(VALUES, name="value").to_csv(tmp_path / "order.csv", index=False)
    np.save(tmp_path / "order.npy", np.array(VALUES))
    for name in ("v.csv", "v.tsv", "bare.csv", "order.csv", "order.npy"):
        numbers, remarks = read_item_values(tmp_path / name).align_numbers(SAMPLES)
        assert (numbers.tolist(), remarks) == (VALUES, []), name
    nameless = Items("sample", 3)
    with pytest.raises(ReadError, match=r"v\.csv has names of samples, but the data have none"):
        read_item_values(tmp_path / "v.csv").align_numbers(nameless)
    numbers, remarks = read_item_values(tmp_path / "order.csv").align_numbers(nameless)
    assert (numbers.tolist(), remarks) == (VALUES, [])


def test_ids_stand_for_names_and_booleans_for_numbers(tmp_path) -> None:
    file = tmp_path / "v.csv"
    file.write_text("gene,panel\nENSG2,False\nENSG1,True\nENSG4,true\nENSG3,0\nENSG9,1\n")
    numbers, (remark,) = read_item_values(file).align_numbers(FEATURES)
    assert numbers.tolist() == [1, 0, 0, 1]
    assert "1 name is not among the features of the data, such as 'ENSG9', and not used" in remark


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("n,v\ns1,1\ns2,1\n", r"v\.csv lacks the sample 's3' of the data: add"),
        ("n,v\nx,1\ns2,1\n", r"v\.csv lacks the sample 's1' of the data, and 1 other: add"),
        ("n,v\ns1,1\ns1,1\ns2,1\ns3,1\n", r"v\.csv has the sample 's1' more than once"),
        ("n,v\ns1,1\ns2,x\ns3,1\n", r"the value 'x' of 's2' is not a number"),
        ("n,v,w\ns1,1,1\ns2,1,1\ns3,1,1\n", r"has 3 columns, expected two: names and values"),
        ("v\n1\n2\n", r"has 2 values, expected one for each of the 3 samples"),
    ],
)
def test_values_that_do_not_match_are_refused(tmp_path, text, message) -> None:
    (tmp_path / "v.csv").write_text(text)
    with pytest.raises(ReadError, match=message):
        read_item_values(tmp_path / "v.csv").align_numbers(SAMPLES)


def test_masks_and_weights_of_any_order_and_format(tmp_path) -> None:
    frame = pd.DataFrame(MATRIX, SAMPLES.names, FEATURES.names)
    frame.iloc[::-1, [2, 0, 3, 1]].to_csv(tmp_path / "w.csv")
    (frame != 0).iloc[::-1].to_csv(tmp_path / "m.csv")
    (frame != 0).to_csv(tmp_path / "bare.csv", index=False)
    np.save(tmp_path / "w.npy", MATRIX)
    np.save(tmp_path / "m.npy", MATRIX != 0)
    sparse.save_npz(tmp_path / "m.npz", sparse.csr_array(MATRIX))
    for name in ("w.csv", "w.npy"):
        np.testing.assert_array_equal(read_weights(tmp_path / name, SAMPLES, FEATURES)[0], MATRIX)
    for name in ("m.csv", "bare.csv", "m.npy", "m.npz", "w.csv"):
        mask, _ = read_mask(tmp_path / name, SAMPLES, FEATURES)
        np.testing.assert_array_equal(mask, MATRIX != 0, err_msg=name)
    with pytest.raises(ReadError, match="is a sparse matrix, which does not say what weights"):
        read_weights(tmp_path / "m.npz", SAMPLES, FEATURES)


def test_long_tables_have_some_entries(tmp_path) -> None:
    file = tmp_path / "w.csv"
    file.write_text("sample,feature,weight\ns2,c,0\ns1,a,0.5\n")
    weights, _ = read_weights(file, SAMPLES, FEATURES)
    assert weights.nnz == 2  # a zero is a weight; entries that are not listed have the weight 1
    assert weights[0, 0] == 0.5
    mask, _ = read_mask(file, SAMPLES, FEATURES)
    assert np.argwhere(mask).tolist() == [[0, 0]]
    for text, message in (
        ("s9,c,1\n", r"line 4: 's9' is not a sample of the data"),
        ("s1,z,1\n", r"line 4: 'z' is not a feature of the data"),
        ("s1,a,1\n", r"line 4, has the same sample and feature as line 3"),
        ("s1,b,-1\n", r"line 4, column 'weight': the count -1 is negative"),
    ):
        file.write_text("sample,feature,weight\ns2,c,0\ns1,a,0.5\n" + text)
        with pytest.raises(ReadError, match=message):
            read_weights(file, SAMPLES, FEATURES)
    with pytest.raises(ReadError, match="the data have no names of samples"):
        read_weights(file, Items("sample", 3), FEATURES)


def test_a_mask_of_features(tmp_path) -> None:
    (tmp_path / "m.csv").write_text("gene,panel\nd,1\nc,0\nb,1\na,0\n")
    mask, _ = read_mask(tmp_path / "m.csv", SAMPLES, FEATURES)
    assert mask.tolist() == [False, True, False, True]


def test_matrices_that_do_not_match_are_refused(tmp_path) -> None:
    frame = pd.DataFrame(MATRIX, SAMPLES.names, FEATURES.names)
    frame.drop(columns="b").to_csv(tmp_path / "w.csv")
    with pytest.raises(ReadError, match=r"w\.csv lacks the feature 'b' of the data"):
        read_weights(tmp_path / "w.csv", SAMPLES, FEATURES)
    np.save(tmp_path / "w.npy", MATRIX[:2])
    with pytest.raises(ReadError, match=r"w\.npy has 2 samples, expected the 3 of the data"):
        read_weights(tmp_path / "w.npy", SAMPLES, FEATURES)


@pytest.mark.parametrize("transpose", [False, True])
def test_known_components_are_reordered_by_name(tmp_path, transpose) -> None:
    rows = pd.DataFrame(MATRIX, ["SBS1", "SBS5", "component 3"], FEATURES.names)
    other = rows[["d", "b", "a", "c"]].assign(z=7.0)
    (other.T if transpose else other).to_csv(tmp_path / "sig.tsv", sep="\t", index_label="Type")
    known = read_known_components(tmp_path / "sig.tsv", FEATURES)
    values, (remark,) = known.align(FEATURES)
    np.testing.assert_array_equal(values, MATRIX)
    assert known.unambiguous_names() == ("SBS1", "SBS5", "sig component 3")
    assert "such as 'z', and not used" in remark
    rows.drop(columns="c").to_csv(tmp_path / "few.csv")
    with pytest.raises(ReadError, match=r"few\.csv lacks the feature 'c' of the data"):
        read_known_components(tmp_path / "few.csv", FEATURES).align(FEATURES)
    rows.rename(columns=str.upper).to_csv(tmp_path / "other.csv")
    with pytest.raises(ReadError, match=r"has no feature of the data, such as 'a'.*like 'A'"):
        read_known_components(tmp_path / "other.csv", FEATURES)


def test_known_components_without_names_are_matched_by_shape(tmp_path) -> None:
    nameless = Items("feature", 4)
    for array in (MATRIX, MATRIX.T):
        np.save(tmp_path / "k.npy", array)
        known = read_known_components(tmp_path / "k.npy", nameless)
        np.testing.assert_array_equal(known.align(nameless)[0], MATRIX)
    np.save(tmp_path / "k.npy", MATRIX[:, :2])
    with pytest.raises(ReadError, match=r"k\.npy has 2 features, expected the 4"):
        read_known_components(tmp_path / "k.npy", nameless).align(nameless)
