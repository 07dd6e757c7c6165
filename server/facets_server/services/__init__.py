"""The services of ``facets.v1``: from message to library call to message, nothing else."""
