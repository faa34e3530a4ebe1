"""The tree search: options, trees, kernels, and the loop that runs them."""
