#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Lines of Python and of C++ that the tests of a fresh clone run: at least 95 of 100 of each.
#
#     tools/coverage.sh [arguments of pytest]
#
# The kernels are built again, counting, into an environment of their own that borrows the libraries
# of PYTHON. Data sets and browsers do not count: what only they reach is listed as missing.
set -eu
cd "$(dirname "$0")/.."
unset SIPOWER_DATA
least=95 bin=build/coverage/venv/bin
libraries='import sysconfig; print(sysconfig.get_path("purelib"))'

rm -rf build/coverage
"${PYTHON:-python3}" -m venv build/coverage/venv
"${PYTHON:-python3}" -c "$libraries" > "$("$bin/python" -c "$libraries")/borrowed.pth"
"$bin/python" -m pip install --quiet coverage==7.17.2 gcovr==8.7
"$bin/python" -m pip install --quiet --no-deps --editable . \
    --config-settings=cmake.define.SIPOWER_SANITIZE=coverage \
    --config-settings=build-dir=build/coverage/objects

export COVERAGE_RCFILE="$PWD/tools/coverage.ini"
tests=0
"$bin/python" -m coverage run -m pytest -n 2 "$@" || tests=$?
"$bin/python" -m coverage combine --quiet
python=0 cpp=0
"$bin/python" -m coverage report --fail-under=$least || python=$?
"$bin/gcovr" --root . --filter cpp/ --merge-lines --fail-under-line $least build/coverage/objects || cpp=$?
test "$tests$python$cpp" = 000
