# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Recording and replay of datagrams: pcap, pcapng."""
