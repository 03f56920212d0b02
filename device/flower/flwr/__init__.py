"""The parts of Flower that a device of dprec needs, unchanged but for this file and a few others.

Flower is by Flower Labs GmbH and others, under the Apache License, Version 2.0; see https://flower.ai. Its
other parts, and what they depend on, are left out: this package serves `dprec-device` alone.
"""
