"""What happens on the devices: Flower ClientApps in which one node hosts a cohort of users."""
