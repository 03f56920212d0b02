"""What happens on the devices: Flower ClientApps in which one node hosts a cohort of users."""

from clients.app import client_app

__all__ = ["client_app"]
