"""Faults against a shadow: kills, damaged files and full disks, and what the stores say afterwards."""
