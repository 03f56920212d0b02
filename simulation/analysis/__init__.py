"""What figures mean: settings and averages of a comparison, advice, projection, and their wording."""
