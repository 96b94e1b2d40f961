# SPDX-License-Identifier: BSD-3-Clause
# Fit KL-NMF to a sparse matrix of R, without files, through the package reticulate.
#
#   RETICULATE_PYTHON=.venv/bin/python Rscript examples/r/reticulate.R
#
# Numbers are passed as bytes, which works with every version of reticulate: those before 1.38 cannot
# convert arrays of NumPy 2, which sipower needs. A matrix may have up to 2^28 nonzeros; larger ones
# are written with Matrix::writeMM and read with `sipower fit counts.mtx`.

library(Matrix)
library(reticulate)

numpy <- import("numpy", convert = FALSE)
scipy <- import("scipy.sparse", convert = FALSE)
sipower <- import("sipower", convert = FALSE)

# Return a vector of R as an array of NumPy.
to_numpy <- function(x) {
  type <- if (is.integer(x)) "int32" else "float64"
  numpy$frombuffer(r_to_py(writeBin(x, raw())), dtype = type)
}

# Return an array of NumPy with two axes as a matrix of R.
to_matrix <- function(array) {
  size <- c(py_to_r(array$shape[0]), py_to_r(array$shape[1]))
  bytes <- import_builtins(convert = FALSE)$bytearray(array$astype("float64")$tobytes())
  matrix(readBin(py_to_r(bytes), "double", prod(size)), size[1], byrow = TRUE)
}

# Fit K components to a dgCMatrix.
#
# Matrices of Seurat and SingleCellExperiment are features x samples, and sipower expects samples x
# features. The columns of such a matrix, in compressed form, are the rows of its transpose, so that
# nothing is copied. Set samples_are_columns = FALSE for samples x features.
klnmf <- function(counts, components, seed = 0L, samples_are_columns = TRUE) {
  if (!samples_are_columns) counts <- t(counts)
  shape <- tuple(as.integer(ncol(counts)), as.integer(nrow(counts)))
  parts <- tuple(to_numpy(counts@x), to_numpy(counts@i), to_numpy(counts@p))
  model <- sipower$KLNMF(as.integer(components), random_state = as.integer(seed))
  W <- to_matrix(model$fit_transform(scipy$csr_array(parts, shape = shape)))
  H <- to_matrix(model$components_)
  names <- paste("component", seq_len(components))
  dimnames(W) <- list(colnames(counts), names)
  dimnames(H) <- list(names, rownames(counts))
  list(W = W, H = H, status = py_to_r(model$status_), gap = py_to_r(model$kkt_residual_),
       divergence = py_to_r(model$kl_divergence_))
}

main <- function() {
  set.seed(0)
  profiles <- matrix(rgamma(200 * 3, 0.2), 200)            # 200 genes, 3 programs
  usages <- matrix(rgamma(3 * 300, 0.3), 3)                # of 300 cells
  counts <- Matrix(rpois(200 * 300, 5 * profiles %*% usages), 200, sparse = TRUE,
                   dimnames = list(paste0("gene", 1:200), paste0("cell", 1:300)))
  counts <- as(counts, "generalMatrix")                    # a dgCMatrix, genes x cells
  counts <- counts[rowSums(counts) > 0, colSums(counts) > 0]
  fit <- klnmf(counts, 3)
  cat(fit$status, "with a certified gap of", format(fit$gap, digits = 2), "\n")
  cat("divergence", format(fit$divergence, digits = 6), "\n")
  shares <- fit$W * rep(rowSums(fit$H), each = nrow(fit$W))
  cat("the shares of the first cells:\n")
  print(round(head(shares / rowSums(shares)), 2))
  invisible(list(counts = counts, fit = fit))
}

if (sys.nframe() == 0) main()
