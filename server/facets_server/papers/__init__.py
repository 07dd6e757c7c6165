"""RecommendationService and the models behind it."""
