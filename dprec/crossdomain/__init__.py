"""Cross-domain recommendation as in X-Map (Guerraoui et al. [guerraoui2017]), one module per step."""
