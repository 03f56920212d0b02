"""Results as other programs read them: `dprec.export`."""
