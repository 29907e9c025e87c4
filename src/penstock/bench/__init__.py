"""Measurements that a user can repeat: `penstock bench`."""
