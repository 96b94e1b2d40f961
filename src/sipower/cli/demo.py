# SPDX-License-Identifier: BSD-3-Clause
"""`sipower demo`: find topics in the docstrings of installed libraries."""

from pathlib import Path
from typing import Annotated

import typer

from sipower.cli import options, run_folder
from sipower.cli.application import command, require
from sipower.cli.console import Console
from sipower.datasets import docstrings
from sipower.estimators import KLNMF
from sipower.io import Table
from sipower.results import Run, save_run
from sipower.results.describe import describe, readable

WORDS_PER_TOPIC = 9


@command("nothing is saved")
def demo(
    out: Annotated[Path, typer.Option("-o", "--out", help="Run folder.")] = Path("sipower-demo"),
    components: options.Rank = 20,
    force: options.Force = False,
) -> int:
    """Find topics in the docstrings of numpy, scipy and scikit-learn, in about a minute."""
    console = Console()
    require("plotly", "jinja2")
    with run_folder.claim(out, force):
        console.say("Reading the docstrings of the installed numpy, scipy and scikit-learn ...")
        corpus = docstrings()
        rows, columns = corpus.counts.shape
        console.say(f"{rows:,} documents x {columns:,} words, {corpus.counts.nnz:,} nonzeros")
        console.say("")
        table = Table(corpus.counts, corpus.documents, corpus.words)
        model = KLNMF(components, tol=1e-2, max_time=30, random_state=0, dtype="float32")
        run = run_folder.fit_with_progress(model, table, console, None, {})
        save_run(run, out)
        run_folder.write_derived_files(run, out, console, run_folder.DerivedFiles({}))
        _say_topics(run, console)
        run_folder.say_result(run, out, console)
        console.say(f"Open {out}/report.html in a browser.")
    return run_folder.exit_code(run, own_limit=True)


def _say_topics(run: Run, console: Console) -> None:
    """Print the size and the most distinctive features of each component on one line."""
    about = describe(run)
    topics = about.top_features(WORDS_PER_TOPIC)
    for k, (size, words) in enumerate(zip(about.sizes, topics, strict=True), 1):
        console.say(f"{k:3}  {size:6.1%}  {' '.join(readable(word, 30) for word in words)}")
    console.say("")
