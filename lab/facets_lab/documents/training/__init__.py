"""Training of the models of passages."""
