"""What makes a release, and the locked environments of `make`; no part of the distribution."""
