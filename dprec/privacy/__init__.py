"""What was promised to whom: guarantees, the ledger of every user, and the papers' theory."""
