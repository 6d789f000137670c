"""What the vehicle is: parameters, once."""
