"""Measurements that need more than the library: peers, clusters, browsers, long runs."""
