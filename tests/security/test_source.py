# SPDX-License-Identifier: BSD-3-Clause
"""The source itself: nothing in it runs what it reads, and what could is listed with its reason."""

import ast
from collections.abc import Iterator
from pathlib import Path

import sipower

SOURCE = Path(sipower.__file__).parent
MODULES = {
    "cloudpickle", "code", "ctypes", "dill", "ftplib", "http", "joblib", "marshal",
    "multiprocessing", "pickle", "requests", "runpy", "shelve", "shutil", "socket", "subprocess",
    "tarfile", "torch", "urllib", "webbrowser", "xml", "yaml", "zipfile",
}  # fmt: skip
CALLS = {
    "__import__", "compile", "eval", "exec", "extract", "extractall", "import_module",
    "load_npz", "np.load", "popen", "read_elem", "read_hdf", "read_pickle", "startfile", "system",
    "unpack_archive",
}  # fmt: skip
HARMLESS = {"re.compile"}
OPTIONS = {"allow_pickle", "shell"}
# Where such a thing may stand, and why it is harmless there.
ALLOWED = {
    ("__init__.py", "import_module"): "modules of this package, whose names stand in the source",
    ("_files.py", "zipfile"): "members are read one by one into memory, none is written",
    ("experiments/run.py", "multiprocessing"): "sends its own runs to processes of its own",
    ("datasets/originals.py", "import_module"): "Pillow, which is optional",
    ("estimators/memory.py", "ctypes"): "asks Windows how much memory is installed",
    ("io/base.py", "import_module"): "optional libraries, whose names stand in the source",
    ("io/cache.py", "shutil"): "removes folders of the cache that hold nothing else",
    ("_files.py", "shutil"): "asks how much space a disk has left",
    ("cli/run_folder.py", "shutil"): "asks how much space a disk has left",
    ("store/workspace.py", "shutil"): "asks how much space a disk has left",
    ("io/hdf5.py", "read_elem"): "names of an AnnData table: texts and categories, no pickle",
    ("results/annotations.py", "read_elem"): "names of the features of an AnnData copy, no pickle",
    ("kernels/threads.py", "joblib"): "asks whether it stands in a worker of joblib; loads nothing",
    ("results/provenance.py", "subprocess"): "asks git for the commit, with a list and no shell",
}


def uses(tree: ast.AST) -> Iterator[str]:
    """What a module imports, calls or switches on of the lists above."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from {name.name.partition(".")[0] for name in names} & MODULES
            case ast.ImportFrom(module=str(module), level=0):
                yield from {module.partition(".")[0]} & MODULES
            case ast.Call(func=function, keywords=keywords):
                name = ast.unparse(function)
                if name not in HARMLESS:
                    yield from {name, name.rpartition(".")[2]} & CALLS
                on = (key.arg for key in keywords if ast.unparse(key.value) != "False")
                yield from (option for option in on if option in OPTIONS)


def test_the_search_finds_what_it_is_for() -> None:
    source = """
import os, pickle, numpy as np
from urllib.request import urlopen
os.system("x"); eval("x"); np.load("x"); np.load("x", allow_pickle=True); run("x", shell=on)
re.compile("x"); np.savez("x", allow_pickle=False)
"""
    expected = ["pickle", "urllib", "system", "eval", "np.load", "np.load", "allow_pickle", "shell"]
    assert sorted(uses(ast.parse(source))) == sorted(expected)


def test_nothing_that_could_run_a_file_is_used_beside_the_list() -> None:
    files = sorted(SOURCE.rglob("*.py"))
    assert len(files) > 100
    used = {
        (file.relative_to(SOURCE).as_posix(), name)
        for file in files
        for name in uses(ast.parse(file.read_text("utf-8")))
    }
    assert used == set(ALLOWED)
