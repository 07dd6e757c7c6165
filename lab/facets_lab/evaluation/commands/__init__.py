"""The commands of ``facets-eval``; what they need is imported when one runs, so that help and completion are quick."""
