"""The published tables as commands: facets-eval."""
