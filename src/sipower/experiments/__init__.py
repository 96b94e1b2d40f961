# SPDX-License-Identifier: BSD-3-Clause
"""The paper's experiments: protocol, runs, table, figures and verdicts."""
