"""Reading of files that nobody needs to trust: errors in one place, arrays with limits."""
