# SPDX-License-Identifier: BSD-3-Clause
"""`tools/build_wheel.py` refuses builds that differ and archives that hold something else."""

import importlib.util
import io
import tarfile
import zipfile
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[1] / "tools" / "build_wheel.py"
TRACKED = ["src/sipower/__init__.py", "tests/data.csv", "README.md", ".ci/run"]


@pytest.fixture
def tool(monkeypatch):
    spec = importlib.util.spec_from_file_location("build_wheel", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "tracked_files", lambda: TRACKED)
    return module


def write_wheel(path, content):
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in content.items():
            archive.writestr(name, data)
    return path


def write_sdist(path, names):
    with tarfile.open(path, "w:gz") as tar:
        for name in names:
            tar.addfile(tarfile.TarInfo(f"sipower-0.1.0/{name}"), io.BytesIO())
    return path


GOOD = {
    "sipower/": b"",
    "sipower/__init__.py": b"",
    "sipower/_kernels.abi3.so": b"\x7fELF",
    "sipower-0.1.0.dist-info/METADATA": b"",
}
SOURCES = ["src/sipower/__init__.py", "tests/data.csv", "README.md", "PKG-INFO"]


def test_what_belongs_there_is_accepted(tool, tmp_path):
    wheel, sdist = write_wheel(tmp_path / "a.whl", GOOD), write_sdist(tmp_path / "a.gz", SOURCES)
    tool.check_content(wheel, sdist)
    tool.compare([wheel, sdist], [wheel, sdist])


@pytest.mark.parametrize(
    ("content", "sources", "message"),
    [
        (GOOD | {"sipower/tests/data.csv": b"1"}, SOURCES, r"must not hold .*sipower/tests/data"),
        (GOOD | {"tests/data.csv": b"1"}, SOURCES, r"a\.whl .*must not hold .*tests/data"),
        ({k: v for k, v in GOOD.items() if "init" not in k}, SOURCES, r"lacks .*__init__"),
        (GOOD, SOURCES[1:], r"a\.gz lacks .*__init__"),
        (GOOD, [*SOURCES, "build/secret"], r"a\.gz .*must not hold .*build/secret"),
    ],
)
def test_foreign_and_missing_files_are_found(tool, tmp_path, content, sources, message):
    wheel, sdist = write_wheel(tmp_path / "a.whl", content), write_sdist(tmp_path / "a.gz", sources)
    with pytest.raises(SystemExit, match=message):
        tool.check_content(wheel, sdist)


def test_the_folder_of_the_build_is_found_in_the_binary(tool, tmp_path):
    binary = b"\x7fELF" + bytes(tool.FOLDERS[1]) + b"/cpp/kernels.cpp"
    wheel = write_wheel(tmp_path / "a.whl", GOOD | {"sipower/_kernels.abi3.so": binary})
    with pytest.raises(SystemExit, match=r"_kernels\.abi3\.so holds the path"):
        tool.check_content(wheel, write_sdist(tmp_path / "a.gz", SOURCES))


def test_one_different_byte_is_found(tool, tmp_path):
    (tmp_path / "other").mkdir()
    one, other = write_wheel(tmp_path / "a.whl", GOOD), tmp_path / "other" / "a.whl"
    data = bytearray(one.read_bytes())
    data[-1] ^= 1
    other.write_bytes(data)
    with pytest.raises(SystemExit, match="not reproducible"):
        tool.compare([one], [other])
