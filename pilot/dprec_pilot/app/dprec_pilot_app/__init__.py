"""The app that `flwr run` sends to a SuperLink."""
