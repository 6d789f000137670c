# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""A process for test_foxglove_server: two latched topics of 20 MB, images, and a small topic."""

import os
import sys
import time

LATCHED_BYTES = 20_000_000
IMAGE_BYTES = 1_000_000


def main():
    from rfly_bringup.topic_recording.foxglove_server import FoxgloveServer
    from rfly_common.untrusted_files.mcap_reader import Topic

    server = FoxgloveServer("127.0.0.1", 0)
    names = {"/ground": True, "/costs": True, "/image": False, "/pose": False}
    channels = {
        name: server.add_topic(Topic(name, "std_msgs/msg/String", "string data", latched))
        for name, latched in names.items()
    }
    for name in ("/ground", "/costs"):
        server.write(channels[name], os.urandom(LATCHED_BYTES), 1)

    print(server.address, flush=True)
    image = os.urandom(IMAGE_BYTES)
    number = 0
    while os.getppid() == int(sys.argv[1]):
        number += 1
        for name, data in (("/image", image), ("/pose", b"")):
            server.write(channels[name], number.to_bytes(8, "little") + data, time.time_ns())
        if number % 20 == 0:
            cut = {text: count for text, count in server.turned_away().items() if count}
            print(f"{number} {cut}", file=sys.stderr, flush=True)
        time.sleep(0.05)


if __name__ == "__main__":
    main()
