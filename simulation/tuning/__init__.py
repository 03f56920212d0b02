"""The choice of settings by trials on a validation part of the training ratings."""
