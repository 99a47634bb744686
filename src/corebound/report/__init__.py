"""The report: view (records to page models), charts (to SVG), render (to HTML), site (writes)."""
