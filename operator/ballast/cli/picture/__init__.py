"""Pages and plots for people who would rather look than read: one file each, with nothing to fetch."""
