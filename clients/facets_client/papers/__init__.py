"""Authors and citing papers of new papers."""
