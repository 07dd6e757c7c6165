"""Training and evaluation of sentences and phrases."""
