"""Training and evaluation of patterns and relations."""
