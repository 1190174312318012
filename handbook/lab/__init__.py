"""What the chapters use and do not teach: weaving, models, drawing, timing."""
