"""What people see of a running guard. Its place; nothing of it is built yet."""
