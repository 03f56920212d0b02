"""What sums of whole, hidden profiles tell of items: popularity, biases, embeddings."""
