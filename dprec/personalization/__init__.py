"""What a device does with its own clean ratings once the server has told everybody about the items."""
