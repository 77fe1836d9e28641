"""HTTP: the application, its edge, problems and health."""
