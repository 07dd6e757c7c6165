"""Benchmarks: ``python -m benchmarks.NAME`` writes JSON with our figure, the baselines' and their ratio."""
