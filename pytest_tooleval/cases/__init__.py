"""Case types, their file formats and their loaders."""
