"""What adds headers to requests of HTTP; nothing is imported from here."""
