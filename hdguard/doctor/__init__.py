"""`hdguard doctor`: proves the chain from the camera to the robot's answer, one step at a time."""
