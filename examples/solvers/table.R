# Value and gradient of a saved model at one point: Rscript table.R table_r.so model.stitch x1 x2 …
#
# I=$(python -c "import stitchwork.native as n; print(n.include_dir())")
# R CMD SHLIB table_r.c $I/stitchwork.c -o table_r.so        with PKG_CPPFLAGS=-I$I, PKG_CFLAGS="-fno-math-errno -fno-trapping-math"

open_table <- function(path) {
  found <- .C("table_open", path, handle = raw(8), sizes = integer(2), status = 0L)
  if (found$status != 0) stop("the model cannot be opened: status ", found$status)
  list(handle = found$handle, d = found$sizes[1], t = found$sizes[2])
}

# X: one row a point. value: one row a point; gradient: d x t x points.
ask_table <- function(table, X) {
  n <- nrow(X)
  stopifnot(ncol(X) == table$d)
  found <- .C("table_gradient", table$handle, n, as.double(t(X)), F = double(n * table$t), G = double(n * table$t * table$d), status = 0L)
  if (found$status != 0) stop("the model does not answer: status ", found$status)
  list(value = t(matrix(found$F, table$t)), gradient = array(found$G, c(table$d, table$t, n)))
}

arguments <- commandArgs(trailingOnly = TRUE)
dyn.load(arguments[1])
table <- open_table(arguments[2])
answer <- ask_table(table, matrix(as.double(arguments[-(1:2)]), nrow = 1))
for (o in seq_len(table$t)) cat(sprintf("%.17g", c(answer$value[1, o], answer$gradient[, o, 1])), "\n")
invisible(.C("table_close", table$handle))
