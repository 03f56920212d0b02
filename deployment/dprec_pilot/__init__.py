"""The app that `flwr run deployment` sends to a SuperLink."""
