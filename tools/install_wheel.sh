#!/usr/bin/env bash
# Install the wheel in dist/ and the tools of the tests into a new environment, build/wheel-venv.
# Usage: bash tools/install_wheel.sh PYTHON
set -euo pipefail
cd "$(dirname "$0")/.."
rm -rf build/wheel-venv
"$1" -m venv build/wheel-venv
pip=(build/wheel-venv/bin/python -m pip install --quiet)
"${pip[@]}" --upgrade "pip>=25.1"
"${pip[@]}" --group dev
"${pip[@]}" "$(ls dist/*.whl)[all]"
