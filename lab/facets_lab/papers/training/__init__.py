"""Training of the models of papers."""
