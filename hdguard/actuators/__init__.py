"""How decisions reach the robot."""
