# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Worked scenarios of the mission state machine, written as inputs -> current ; previous.

Items are mode@x,y,z/p1,p2,p3,p4. A step lists only the inputs that differ from command 0, not done,
pose 0,0,0,0, home 0,0,0 and the scenario's mission.
"""

from __future__ import annotations

NAMES = {
    "T": "1@0,0,-10/0,0,0,0",
    "A": "2@100,0,-10/0,5,0,0",
    "B": "2@100,100,-10/1.5,8,3,4",
    "O": "3@50,50,-20/30,1,2,0",
    "L": "4@0,0,0/0,0,0,0",
    "R": "5@7,7,7/1,2,3,4",
    "U": "6@5,-5,-30/9,8,7,6",
    "ARM": "0@0,0,0/-1,-1,-1,-1",
}

SCENARIOS = {
    "P1 first step": (
        "MR",
        "T A",
        [
            "-> T ; ARM",
        ],
    ),
    "P2 armed position is the pose of the first step": (
        "MR",
        "T A",
        [
            "pose=3,4,-0.5,1 -> T ; 0@3,4,-0.5/-1,-1,-1,-1",
            "pose=3,4,-2,1 -> T ; 0@3,4,-0.5/-1,-1,-1,-1",
        ],
    ),
    "P3 done on the first step is ignored": (
        "MR",
        "T A",
        [
            "done -> T ; ARM",
            "done -> A ; 1@0,0,-10/0,25,0,0",
        ],
    ),
    "P4 not done: nothing moves": (
        "MR",
        "T A",
        [
            "-> T ; ARM",
            "-> T ; ARM",
            "pose=0,0,-10,0 -> T ; ARM",
        ],
    ),
    "P5 whole mission": (
        "MR",
        "T A B O L",
        [
            "-> T ; ARM",
            "done -> A ; 1@0,0,-10/0,25,0,0",
            "-> A ; 1@0,0,-10/0,25,0,0",
            "done -> B ; A",
            "done -> O ; B",
            "done -> L ; O",
            "-> L ; O",
        ],
    ),
    "P6 done held true advances once per step": (
        "MR",
        "T A B L",
        [
            "-> T ; ARM",
            "done -> A ; 1@0,0,-10/0,25,0,0",
            "done -> B ; A",
            "done -> L ; B",
        ],
    ),
    "P7 land at the end stays": (
        "MR",
        "T L",
        [
            "-> T ; ARM",
            "done -> L ; T",
            "done -> L ; T",
            "done -> L ; T",
        ],
    ),
    "P8 end without land: hold where the last item ended": (
        "MR",
        "T A",
        [
            "-> T ; ARM",
            "done -> A ; 1@0,0,-10/0,25,0,0",
            "done pose=99,1,-10.2,0.3 -> 7@99,1,-10.2/-1,-1,-1,-1 ; A",
            "done pose=97,2,-10,0.3 -> 7@99,1,-10.2/-1,-1,-1,-1 ; A",
        ],
    ),
    "P9 end hold, fixed wing": (
        "FW 40",
        "T A",
        [
            "-> T ; ARM",
            "done -> A ; 1@0,0,-10/0,25,0,0",
            "done pose=99,1,-10,0 -> 7@99,1,-10/40,0,-1,-1 ; A",
            "pose=120,30,-10,2 -> 7@99,1,-10/40,0,-1,-1 ; A",
        ],
    ),
    "P10 hold and resume": (
        "MR",
        "T A B",
        [
            "-> T ; ARM",
            "done -> A ; 1@0,0,-10/0,25,0,0",
            "cmd=1 pose=40,0,-10,0 -> 7@40,0,-10/-1,-1,-1,-1 ; A",
            "cmd=1 done pose=41,0,-10,0 -> 7@40,0,-10/-1,-1,-1,-1 ; A",
            "pose=41,0,-10,0 -> A ; 7@40,0,-10/0,25,-1,-1",
            "done -> B ; A",
        ],
    ),
    "P11 hold, fixed wing, resume to a takeoff": (
        "FW 40",
        "T A",
        [
            "-> T ; ARM",
            "cmd=1 pose=0,0,-5,0 -> 7@0,0,-5/40,0,-1,-1 ; T",
            "-> T ; 7@0,0,-5/40,0,-1,-1",
        ],
    ),
    "P12 hold on the first step": (
        "MR",
        "T A",
        [
            "cmd=1 pose=1,2,0,0 -> 7@1,2,0/-1,-1,-1,-1 ; 0@1,2,0/-1,-1,-1,-1",
            "done pose=1,2,0,0 -> T ; 7@1,2,0/-1,-1,-1,-1",
        ],
    ),
    "P13 done and hold in one step: the item counts as done": (
        "MR",
        "T A B",
        [
            "-> T ; ARM",
            "cmd=1 done pose=0,0,-9,0 -> 7@0,0,-9/-1,-1,-1,-1 ; T",
            "-> A ; 7@0,0,-9/0,25,-1,-1",
        ],
    ),
    "P14 last item done and hold, then default": (
        "MR",
        "T A",
        [
            "-> T ; ARM",
            "done -> A ; 1@0,0,-10/0,25,0,0",
            "cmd=1 done pose=99,0,-10,0 -> 7@99,0,-10/-1,-1,-1,-1 ; A",
            "pose=98,0,-10,0 -> 7@99,0,-10/-1,-1,-1,-1 ; A",
        ],
    ),
    "P15 last item done and hold, then repeat": (
        "MR",
        "T A",
        [
            "-> T ; ARM",
            "done -> A ; 1@0,0,-10/0,25,0,0",
            "cmd=1 done pose=99,0,-10,0 -> 7@99,0,-10/-1,-1,-1,-1 ; A",
            "cmd=2 -> T ; 7@99,0,-10/-1,-1,-1,-1",
        ],
    ),
    "P16 hold commanded during the end hold changes nothing": (
        "MR",
        "A",
        [
            "-> A ; 0@0,0,0/0,25,-1,-1",
            "done pose=100,0,-10,0 -> 7@100,0,-10/-1,-1,-1,-1 ; A",
            "cmd=1 pose=101,0,-10,0 -> 7@100,0,-10/-1,-1,-1,-1 ; A",
            "pose=102,0,-10,0 -> 7@100,0,-10/-1,-1,-1,-1 ; A",
        ],
    ),
    "P17 return to launch and resume with default": (
        "MR",
        "T A B",
        [
            "home=1,2,0 -> T ; ARM",
            "done home=1,2,0 -> A ; 1@0,0,-10/0,25,0,0",
            "cmd=3 home=1,2,0 -> 5@1,2,0/-1,-1,-1,-1 ; A",
            "cmd=3 done home=1,2,0 -> 5@1,2,0/-1,-1,-1,-1 ; A",
            "done home=1,2,0 -> A ; 5@1,2,0/-0.0201993,25,-1,-1",
            "done home=1,2,0 -> B ; A",
        ],
    ),
    "P18 return to launch broken off by repeat": (
        "MR",
        "T O",
        [
            "-> T ; ARM",
            "cmd=3 -> 5@0,0,0/-1,-1,-1,-1 ; T",
            "cmd=2 -> T ; 5@0,0,0/-1,-1,-1,-1",
            "cmd=2 done -> O ; T",
        ],
    ),
    "P19 done and return to launch in one step": (
        "MR",
        "T O",
        [
            "-> T ; ARM",
            "cmd=3 done -> 5@0,0,0/-1,-1,-1,-1 ; T",
            "-> O ; 5@0,0,0/-1,-1,-1,-1",
        ],
    ),
    "P20 home is read at every step": (
        "MR",
        "T",
        [
            "-> T ; ARM",
            "cmd=3 home=1,0,0 -> 5@1,0,0/-1,-1,-1,-1 ; T",
            "cmd=3 home=2,0,0 -> 5@2,0,0/-1,-1,-1,-1 ; T",
            "home=3,0,0 -> T ; 5@2,0,0/-1,-1,-1,-1",
        ],
    ),
    "P21 RTL item takes its position from home": (
        "MR",
        "T R",
        [
            "home=4,5,0 -> T ; ARM",
            "done home=4,5,0 -> 5@4,5,0/1,2,3,4 ; T",
            "done home=6,5,0 -> 5@6,5,0/1,2,3,4 ; T",
        ],
    ),
    "P22 RTL item in the middle": (
        "MR",
        "T R B",
        [
            "-> T ; ARM",
            "done -> 5@0,0,0/1,2,3,4 ; T",
            "done -> B ; 5@0,0,0/0.25pi,25,3,4",
        ],
    ),
    "P23 repeat after land": (
        "MR",
        "T L",
        [
            "cmd=2 -> T ; ARM",
            "cmd=2 done -> L ; T",
            "cmd=2 done -> T ; L",
            "cmd=2 done -> L ; T",
        ],
    ),
    "P24 repeat of one item": (
        "MR",
        "O",
        [
            "cmd=2 -> O ; ARM",
            "cmd=2 done -> O ; O",
            "cmd=2 done -> O ; O",
        ],
    ),
    "P25 repeat while not at the end acts like default": (
        "MR",
        "T A",
        [
            "cmd=2 -> T ; ARM",
            "cmd=2 -> T ; ARM",
            "cmd=2 done -> A ; 1@0,0,-10/0,25,0,0",
        ],
    ),
    "P26 repeat asked for during the end hold": (
        "MR",
        "T O",
        [
            "-> T ; ARM",
            "done -> O ; T",
            "done pose=80,50,-20,0 -> 7@80,50,-20/-1,-1,-1,-1 ; O",
            "cmd=2 -> T ; 7@80,50,-20/-1,-1,-1,-1",
            "done -> O ; T",
            "done pose=20,50,-20,0 -> 7@20,50,-20/-1,-1,-1,-1 ; O",
        ],
    ),
    "P27 hold, then return to launch, then default": (
        "MR",
        "T O",
        [
            "-> T ; ARM",
            "cmd=1 pose=0,0,-3,0 -> 7@0,0,-3/-1,-1,-1,-1 ; T",
            "cmd=3 -> 5@0,0,0/-1,-1,-1,-1 ; 7@0,0,-3/-1,-1,-1,-1",
            "-> T ; 5@0,0,0/-1,-1,-1,-1",
        ],
    ),
    "P28 return to launch from the end hold; default holds anew": (
        "MR",
        "O",
        [
            "-> O ; ARM",
            "done pose=80,50,-20,0 -> 7@80,50,-20/-1,-1,-1,-1 ; O",
            "cmd=3 -> 5@0,0,0/-1,-1,-1,-1 ; 7@80,50,-20/-1,-1,-1,-1",
            "pose=1,1,-5,0 -> 7@1,1,-5/-1,-1,-1,-1 ; 5@0,0,0/-1,-1,-1,-1",
        ],
    ),
    "P29 return to launch after landing; default shows land again": (
        "MR",
        "L",
        [
            "-> L ; ARM",
            "done -> L ; ARM",
            "cmd=3 -> 5@0,0,0/-1,-1,-1,-1 ; L",
            "-> L ; 5@0,0,0/-1,-1,-1,-1",
            "done -> L ; 5@0,0,0/-1,-1,-1,-1",
        ],
    ),
    "P30 mission changed: start over": (
        "MR",
        "T A B",
        [
            "-> T ; ARM",
            "done -> A ; 1@0,0,-10/0,25,0,0",
            "done mission=[O L] -> O ; A",
            "done mission=[O L] -> L ; O",
        ],
    ),
    "P31 mission changed during hold": (
        "MR",
        "T A",
        [
            "-> T ; ARM",
            "cmd=1 pose=0,0,-4,0 -> 7@0,0,-4/-1,-1,-1,-1 ; T",
            "cmd=1 mission=[O L] -> 7@0,0,-4/-1,-1,-1,-1 ; T",
            "mission=[O L] -> O ; 7@0,0,-4/-1,-1,-1,-1",
        ],
    ),
    "P32 mission changed after the end": (
        "MR",
        "L",
        [
            "-> L ; ARM",
            "done -> L ; ARM",
            "mission=[T L] -> T ; L",
        ],
    ),
    "P33 empty mission, then one arrives": (
        "MR",
        "",
        [
            "pose=1,1,-1,0 -> 7@1,1,-1/-1,-1,-1,-1 ; 0@1,1,-1/-1,-1,-1,-1",
            "cmd=2 done -> 7@1,1,-1/-1,-1,-1,-1 ; 0@1,1,-1/-1,-1,-1,-1",
            "mission=[T] -> T ; 7@1,1,-1/-1,-1,-1,-1",
        ],
    ),
    "P34 empty mission, return to launch": (
        "MR",
        "",
        [
            "cmd=3 home=9,9,0 -> 5@9,9,0/-1,-1,-1,-1 ; ARM",
        ],
    ),
    "P35 custom item passes through": (
        "MR",
        "U A",
        [
            "-> U ; ARM",
            "done -> A ; 6@5,-5,-30/0.0525830661,25,7,6",
        ],
    ),
    "P36 orbit then waypoint: the line starts at the centre": (
        "MR",
        "O A L",
        [
            "-> O ; ARM",
            "done -> A ; 3@50,50,-20/-0.25pi,25,2,0",
            "done -> L ; A",
        ],
    ),
    "P37 course angle: west, south, straight up": (
        "MR",
        "1@0,0,-1/0,0,0,0 2@0,-10,-1/0,1,0,0 L 2@-5,0,-9/0,1,0,0 6@1,1,1/0,0,0,0 2@1,1,-9/2,3,0,0",
        [
            "-> 1@0,0,-1/0,0,0,0 ; ARM",
            "done -> 2@0,-10,-1/0,1,0,0 ; 1@0,0,-1/-0.5pi,25,0,0",
            "done -> L ; 2@0,-10,-1/0,1,0,0",
            "done -> 2@-5,0,-9/0,1,0,0 ; 4@0,0,0/pi,25,0,0",
            "done -> 6@1,1,1/0,0,0,0 ; 2@-5,0,-9/0,1,0,0",
            "done -> 2@1,1,-9/2,3,0,0 ; 6@1,1,1/0,25,0,0",
        ],
    ),
    "P38 first item a waypoint": (
        "MR",
        "B",
        [
            "pose=100,0,0,0 -> B ; 0@100,0,0/0.5pi,25,-1,-1",
        ],
    ),
}
