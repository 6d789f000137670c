"""The browser window itself: server, clients, panel."""
