"""Files, names and text: nothing of ours stands below it."""
