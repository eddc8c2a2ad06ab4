"""Many notebooks: side by side or on a cluster, with progress, resumed where a run stopped."""
