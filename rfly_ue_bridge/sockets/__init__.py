"""UDP sockets: sender, receiver, rate limiter."""
