"""Training and evaluation of papers, authors and citations."""
