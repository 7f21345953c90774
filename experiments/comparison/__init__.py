"""Our estimators beside other libraries: losses, costs, learning curves, certificates."""
