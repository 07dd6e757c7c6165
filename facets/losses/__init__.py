"""Training losses, one a file: pure functions of tensors."""

from facets.losses.sparse_coding import sparse_coding_loss

__all__ = ["sparse_coding_loss"]
