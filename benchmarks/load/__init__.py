"""A control plane under load: applications that come and go, and what it costs."""
