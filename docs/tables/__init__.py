"""The tables of the documents, from committed summaries of comparisons and from the presets."""
