"""Training: packed corpora, batches, the loop, export."""
