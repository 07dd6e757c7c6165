"""Output layers that predict the next word or item, and the experiments that compare them."""
