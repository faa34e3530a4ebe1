"""Measurements that need more than Seraphim: its peers, run beside it."""
