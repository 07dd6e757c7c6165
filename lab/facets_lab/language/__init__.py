"""Training and evaluation of word vectors."""
