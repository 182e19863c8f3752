"""What a results row is, and the numbers made of rows. Nothing here draws, formats or loads a model."""
