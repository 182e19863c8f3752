"""Who runs the points of a sweep."""
