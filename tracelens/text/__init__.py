"""What the command line, the screens and reports say alike: safe text, stage bars, grids, rows of a file, findings in words."""
