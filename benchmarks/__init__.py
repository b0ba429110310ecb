"""Speed and memory as ratios, measured in one run; outputs are compared before a figure is printed."""
