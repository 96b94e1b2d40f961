#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Measure the lines of Python and of C++ that the tests of a fresh clone run: at least 95 % of each.
#
#     tools/coverage.sh [arguments of pytest]
#
# The kernels are built with counters into a separate environment that uses the libraries of PYTHON.
# Tests that need data sets or a browser do not run: lines that only they reach count as missing.
set -eu
cd "$(dirname "$0")/.."
unset SIPOWER_DATA
minimum=95 bin=build/coverage/venv/bin
libraries='import sysconfig; print(sysconfig.get_path("purelib"))'

rm -rf build/coverage
python=${PYTHON:-python3}
"$python" -m venv build/coverage/venv
"$python" -c "$libraries" > "$("$bin/python" -c "$libraries")/borrowed.pth"
install="$python -m pip --python $bin/python install --quiet"
$install --ignore-installed --group coverage  # coverage's hook for subprocesses must be here
$install --no-deps --editable . \
    --config-settings=cmake.define.SIPOWER_SANITIZE=coverage \
    --config-settings=build-dir=build/coverage/objects

export COVERAGE_RCFILE="$PWD/tools/coverage.ini"
tests=0
# Ctrl-C in a critical section of coverage leaves its lock held, and the process waits for ever.
"$bin/python" -m coverage run -m pytest -n 2 "$@" \
    --deselect tests/faults/test_interrupts.py || tests=$?
"$bin/python" -m coverage combine --quiet
py=0 cpp=0
"$bin/python" -m coverage report --fail-under=$minimum || py=$?
# Headers of nanobind are gone with pip's build folder; inner loops run billions of times.
"$bin/gcovr" --root . --filter cpp/ --merge-lines --fail-under-line $minimum \
    --exclude-directories '.*nanobind.*' --gcov-suspicious-hits-threshold 0 \
    --gcov-ignore-errors=source_not_found --gcov-ignore-errors=no_working_dir_found \
    build/coverage/objects 2> build/coverage/gcovr.log || cpp=$?
echo "exit codes: tests $tests, Python $py, C++ $cpp (build/coverage/gcovr.log)"
test "$tests$py$cpp" = 000
