"""Cross-domain recommendation as in X-Map (Guerraoui et al.), one module per step of the method."""
