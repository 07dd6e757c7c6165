"""Making word vectors for a packed corpus."""
