"""The `rfly` command, one module a group."""
