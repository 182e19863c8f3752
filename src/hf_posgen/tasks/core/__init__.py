"""What all tasks are made of."""
