"""A fitted function, frozen: its levels of regions, how they are stitched, where a query finds them, and its arrays."""
