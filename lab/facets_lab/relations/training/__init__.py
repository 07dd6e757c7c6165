"""Training of the models of relations."""
