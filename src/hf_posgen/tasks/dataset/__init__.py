"""Tasks as data sets: the builder, exported folders and their cards."""
