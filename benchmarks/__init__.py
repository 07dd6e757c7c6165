"""Benchmarks: ``python -m benchmarks.NAME`` writes JSON with our result, the baselines' results and their ratio."""
