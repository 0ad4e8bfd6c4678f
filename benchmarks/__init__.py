"""Benchmarks: commands, not tests. Each answers one question and prints where its figures come from."""
