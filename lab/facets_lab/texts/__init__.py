"""Training of models of sentences and of pairs; evaluation of sentences, phrases and summaries."""
