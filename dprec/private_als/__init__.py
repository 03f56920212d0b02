"""Private alternating least squares: statistics that are summed over users, and steps that items take."""
