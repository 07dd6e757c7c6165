"""One runner for everything that goes through a long input: documents, recommendations, additions."""
