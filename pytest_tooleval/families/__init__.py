"""One module for each family of cases: how to run one, and what it measures."""
