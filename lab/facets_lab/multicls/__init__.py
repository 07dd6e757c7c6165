"""Several class tokens of one encoder: classification with few examples, citations (Chang 2022, chapter 5)."""
