"""What `skilleval` does with finished runs, cases and skills: one command a module."""
