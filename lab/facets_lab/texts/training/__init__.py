"""Training of the models of texts."""
