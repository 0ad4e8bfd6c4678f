"""How a model comes about: points, plan, cover, candidates, scores, choice, background, and the recipe that puts them together."""
