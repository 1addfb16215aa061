"""cp.async and mbarrier."""
