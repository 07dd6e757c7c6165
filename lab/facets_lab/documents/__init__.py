"""Training and evaluation of passages and search."""
