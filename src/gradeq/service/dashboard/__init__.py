"""The dashboard: pages rendered on the server that update live and load nothing from other sites."""
