"""Output layers that predict the next word or item, and what they are tried on."""
