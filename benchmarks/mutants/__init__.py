"""Where small changes to the core are made, to see which of them no test notices."""
