"""Relations and entailment."""
