"""What adds headers to requests; nothing is imported from here."""
