"""Training losses of all tasks: pure functions of tensors."""
