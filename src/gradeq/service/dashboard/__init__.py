"""The dashboard: pages of layers that change by themselves, without a request to anywhere else."""
