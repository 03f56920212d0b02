"""The courses: how protocols run over Flower, and what only a simulation knows of it."""
