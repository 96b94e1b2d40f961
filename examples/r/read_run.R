# SPDX-License-Identifier: BSD-3-Clause
# Read the tables of a run folder and draw its structure plot, in base R.
#
#   sipower fit counts.csv -k 6 -o run --also csv
#   Rscript examples/r/read_run.R run structure.png
#
# The rows of W and shares are samples (cells, documents, tumours), those of H features. This is the
# transpose of H in Python.

# Return a table of a run folder, such as "W", "H" or "shares", as a matrix with row names.
read_factor <- function(folder, name) {
  file <- file.path(folder, paste0(name, ".csv"))
  if (!file.exists(file)) {
    stop(file, " does not exist: write it with `sipower fit ... --also csv`", call. = FALSE)
  }
  table <- read.csv(file, check.names = FALSE, colClasses = c(name = "character"),
                    na.strings = character(0), encoding = "UTF-8")
  matrix(as.matrix(table[-1]), nrow(table), dimnames = list(table$name, names(table)[-1]))
}

# Return a list of W (samples x K), H (features x K), shares (samples x K) and the trace.
read_run <- function(folder) {
  tables <- c(W = "W", H = "H", shares = "shares")
  c(lapply(tables, read_factor, folder = folder),
    list(trace = read.csv(file.path(folder, "trace.csv"))))
}

# Return the names of the largest features of each component, in columns.
top_features <- function(H, n = 5) {
  n <- min(n, nrow(H))
  largest <- apply(H, 2, function(h) rownames(H)[order(h, decreasing = TRUE)[seq_len(n)]])
  matrix(largest, n, dimnames = list(NULL, colnames(H)))
}

# Draw the shares of the components as one bar for each sample; samples with the same largest
# component are neighbours.
structure_plot <- function(shares, colours = hcl.colors(ncol(shares), "Dark 3")) {
  largest <- max.col(shares, ties.method = "first")
  order <- order(largest, -shares[cbind(seq_along(largest), largest)])
  samples <- nrow(shares)
  margins <- par(mar = c(2, 4, 1, 1))
  on.exit(par(margins))
  barplot(t(shares[order, , drop = FALSE]), col = colours, border = NA, space = 0,
          axisnames = FALSE, ylab = "share", xlim = c(0, 1.25 * samples),
          legend.text = colnames(shares),
          args.legend = list(x = "topright", border = NA, bty = "n"))
  mtext("samples", side = 1, line = 0.5, at = samples / 2)
}

main <- function(folder, picture = "structure.png") {
  run <- read_run(folder)
  last <- run$trace[nrow(run$trace), ]
  cat(nrow(run$W), "samples,", nrow(run$H), "features,", ncol(run$W), "components\n")
  cat("divergence", format(last$objective, digits = 6), "after", last$round, "rounds\n")
  cat("largest features:\n")
  print(top_features(run$H), quote = FALSE)
  png(picture, width = 900, height = 400, type = "cairo")
  structure_plot(run$shares)
  invisible(dev.off())
  cat("wrote", picture, "\n")
}

# `source("read_run.R")` defines the functions; `Rscript read_run.R run` also runs them.
if (sys.nframe() == 0) {
  arguments <- commandArgs(trailingOnly = TRUE)
  if (length(arguments) == 0) {
    stop("Name the run folder: Rscript read_run.R run [structure.png]", call. = FALSE)
  }
  do.call(main, as.list(arguments))
}
