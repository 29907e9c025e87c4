"""Records in their encodings, read into Arrow batches that fit a schema; what does not fit is told apart."""
