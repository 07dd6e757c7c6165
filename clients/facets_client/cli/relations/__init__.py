"""Commands for relations."""
