"""Recording and replay of datagrams: pcap, pcapng."""
