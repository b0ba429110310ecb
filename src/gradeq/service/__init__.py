"""The HTTP service: live layers with a durable, audited journal, and a dashboard (extra ``service``)."""
