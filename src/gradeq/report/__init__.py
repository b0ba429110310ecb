"""The report pages: what a run says in words, thinned series, one self-contained HTML file."""
