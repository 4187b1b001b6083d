"""What a person or a program reads after a run."""
