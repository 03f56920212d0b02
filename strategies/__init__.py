"""What the server does with the replies: Flower strategies that complete the rating matrix."""
