"""Ways to look at a fitted model, without any package for pictures: slices, grids, a summary, a view for notebooks, errors."""
