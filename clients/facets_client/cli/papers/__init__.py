"""Commands for papers."""
