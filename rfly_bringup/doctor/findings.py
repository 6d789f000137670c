# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Findings: problems that a snapshot shows, in plain words, and what to do. No ROS."""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from rfly_bringup.doctor.snapshot import OK, Destination, DiagnosticReport, Snapshot
from rfly_bringup.nodes.entry_points import MODULES
from rfly_bringup.nodes.parameter_names import is_known, similar_node, similar_parameter
from rfly_common.config.ros_parameters import NodeSection
from rfly_common.diagnostic_reasons import Reason

BRIDGE = "ue_bridge_node"
TERRAIN = "terrain_node"
TERRAIN_TYPE = "rfly_suite/msg/TerrainMap"
STATES_TYPE = "rfly_suite/msg/VehicleStateArray"
LEAST_FREE_MB = 64.0
"""Free space in /dev/shm, MB: a node takes about half a megabyte."""
_SHOWN = 5
"""Names and ids that are listed before "and … more"."""
_PORT_DIGITS = 5

_CLEAN_UP = (
    "stop all ROS nodes of this machine, then: rm /dev/shm/fastrtps_* /dev/shm/sem.fastrtps_*"
)
_BAD_MAP = (
    "rfly terrain info MAP says what is wrong with the files; "
    "call load_terrain with another map, or restart with it"
)
_IS_RFLYSIM3D_RUNNING = "is RflySim3D running there? Is its firewall open?"
_START_TERRAIN = (
    "start terrain_node (rfly up does), in this namespace and domain; "
    "where it runs, its log says why no map is loaded"
)


@dataclass(frozen=True)
class Finding:
    """A problem, or a remark that is worth knowing."""

    key: str
    """Subject of the finding; the first finding of a key counts."""
    what: str
    """Sentence that says what is wrong."""
    do: str = ""
    """Sentence that says how to solve it."""
    problem: bool = True
    """False if it is only worth knowing."""


def find(snapshot: Snapshot) -> list[Finding]:
    """Return all problems, the most fundamental first, then what is worth knowing."""
    found: dict[str, Finding] = {}
    for rule in _RULES:
        for finding in rule(snapshot):
            found.setdefault(finding.key, finding)
    return sorted(found.values(), key=lambda finding: not finding.problem)


def suite_nodes(snapshot: Snapshot) -> list[str]:
    """Return the nodes of this suite, by the last part of their name."""
    return [name for name in snapshot.nodes if name.rpartition("/")[2] in MODULES]


def _is_bridge(node: str, snapshot: Snapshot) -> bool:
    """Return whether a node is a bridge, by its name or by its destinations."""
    return node.endswith(BRIDGE) or any(to.bridge == node for to in snapshot.destinations)


# --- machine


def _shared_memory(snapshot: Snapshot) -> Iterator[Finding]:
    memory = snapshot.machine.shared_memory

    if memory.stuck_ports:
        yield Finding(
            "shm_stuck",
            f"a killed process has left {_listed(memory.stuck_ports)} in /dev/shm locked: "
            "new nodes wait for it",
            _CLEAN_UP,
        )

    if memory.foreign:
        yield Finding(
            "shm_foreign",
            f"another user's nodes have left {_listed(memory.foreign)} in /dev/shm: "
            "yours cannot open them, and hear nothing from nodes of this machine",
            f"as that user or root, {_CLEAN_UP}; or set ROS_DOMAIN_ID to another number",
        )

    leftovers = f"{memory.leftovers} files of killed nodes hold {memory.leftover_mb:.0f} MB"
    if memory.free_mb < LEAST_FREE_MB:
        yield Finding(
            "shm_full",
            f"/dev/shm has {memory.free_mb:.0f} MB left; {leftovers}: "
            "new nodes cannot talk by shared memory",
            _CLEAN_UP,
        )
    elif memory.leftovers and not memory.stuck_ports:
        yield Finding(
            "shm_leftovers",
            f"{leftovers} of /dev/shm and cause no trouble",
            _CLEAN_UP,
            problem=False,
        )


def _multicast(snapshot: Snapshot) -> Iterator[Finding]:
    if not snapshot.machine.multicast and snapshot.discovery_range == "SUBNET":
        yield Finding(
            "multicast",
            "multicast does not work on this machine: "
            "with Fast DDS nodes of other machines are not found",
            "allow it (ip link set DEV multicast on; let UDP to 239.255.0.1 through the firewall), "
            "or name the others in ROS_STATIC_PEERS",
        )


# --- graph


def _nothing_runs(snapshot: Snapshot) -> Iterator[Finding]:
    if suite_nodes(snapshot) or snapshot.statuses:
        return

    seen = "no node at all"
    if snapshot.nodes:
        seen = f"{len(snapshot.nodes)} nodes, among them {_listed(snapshot.nodes)}"

    do = "start them: rfly up"
    if snapshot.machine.other_domains:
        domains = ", ".join(map(str, snapshot.machine.other_domains[:_SHOWN]))
        do += (
            f". Programs of this machine talk in domain {domains}: "
            f"ROS_DOMAIN_ID={snapshot.machine.other_domains[0]} rfly doctor looks there"
        )

    yield Finding(
        "nothing",
        f"no node of rfly_suite is seen in ROS domain {snapshot.domain_id} "
        f"(discovery range {snapshot.discovery_range}); {seen}",
        f"{do}. Nodes on another machine: both sides need the same ROS_DOMAIN_ID, "
        "and rfly up --lan there",
    )


def _twice(snapshot: Snapshot) -> Iterator[Finding]:
    for name, count in Counter(snapshot.nodes).items():
        if count > 1:
            yield Finding(
                f"node_twice:{name}",
                f"{count} nodes of ROS domain {snapshot.domain_id} are called {name}",
                "is another rfly up running? Stop it, "
                "or give it another ROS_DOMAIN_ID or --namespace",
            )

    for topic in sorted({end.topic for end in snapshot.endpoints if end.type == TERRAIN_TYPE}):
        publishers = snapshot.publishers(topic)
        if len(publishers) > 1:
            yield Finding(
                f"terrain_twice:{topic}",
                f"{len(publishers)} nodes publish {topic}: {_listed(publishers)}; "
                "the newest counts for the others",
                "keep one terrain_node in a domain and namespace",
            )

    bridges = defaultdict(list)
    for to in snapshot.destinations:
        bridges[to.host, to.port].append(to.bridge)
    for (host, port), names in bridges.items():
        if len(names) > 1:
            yield Finding(
                f"bridge_twice:{host}:{port}",
                f"{len(names)} bridges send to {host}:{port}: {_listed(names)}; "
                "each vehicle may be drawn twice there",
                "keep one ue_bridge_node for each RflySim3D, or give each its own vehicles",
            )


def _silent_nodes(snapshot: Snapshot) -> Iterator[Finding]:
    heard = {status.node for status in snapshot.statuses}
    for name in suite_nodes(snapshot):
        if name not in heard:
            yield Finding(
                f"silent:{name}",
                f"{name} is there, but says nothing on /diagnostics",
                "it still starts, or hangs: look at its output. "
                "On another machine: nothing of it arrives here",
            )


def _no_map(snapshot: Snapshot) -> Iterator[Finding]:
    for topic in sorted({end.topic for end in snapshot.endpoints if end.type == TERRAIN_TYPE}):
        waiting = sorted(
            {end.node for end in snapshot.endpoints if end.topic == topic and not end.publishes}
        )

        if waiting and not snapshot.publishers(topic):
            wait = "waits" if len(waiting) == 1 else "wait"
            # bridges need it for objects only
            is_problem = any(not _is_bridge(node, snapshot) for node in waiting)
            yield Finding(
                "no_map",
                f"no node publishes {topic}, which {_listed(waiting)} {wait} for",
                _START_TERRAIN,
                problem=is_problem,
            )


def _mismatches(snapshot: Snapshot) -> Iterator[Finding]:
    for pair in snapshot.mismatches:
        if pair.types_differ:
            do = (
                "remap one of them: a topic has one type; "
                "the bridge's for a robot is by its parameter NAME.message"
            )
        else:
            do = (
                "make both agree: publish reliable (and transient local where a late subscriber "
                "needs the last message), or ask for best effort and volatile; "
                "nodes of rfly_suite take parameters qos_overrides.TOPIC.…"
            )

        yield Finding(
            f"mismatch:{pair.topic}:{pair.publisher}:{pair.subscription}",
            f"{pair.topic}: nothing gets from {pair.publisher} to {pair.subscription}: {pair.why}",
            do,
        )


# --- vehicles


def _topics_of_bridges(snapshot: Snapshot) -> dict[str, set[str]]:
    """Return the topics from which each bridge takes vehicles."""
    topics = defaultdict(set)
    for end in snapshot.endpoints:
        if end.type == STATES_TYPE and not end.publishes and _is_bridge(end.node, snapshot):
            topics[end.node].add(end.topic)
    for robot in snapshot.robots:
        topics[robot.bridge].add(robot.topic)
    return topics


def _ids_by_sources(snapshot: Snapshot) -> dict[tuple[str, ...], dict[str, list[int]]]:
    """Return the ids that one bridge gets from several sources, by these sources and the bridge.

    Sources of one topic are together without a bridge, too: their bridge is "".
    """
    heard = [each for each in snapshot.sources if not each.topic.endswith("removed_vehicles")]
    takers = [*_topics_of_bridges(snapshot).items()]
    taken = {topic for _, topics in takers for topic in topics}
    takers += [("", {topic}) for topic in {each.topic for each in heard} - taken]

    found: dict[tuple[str, ...], dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for taker, topics in takers:
        sources = defaultdict(set)
        for source in heard:
            for vehicle in source.ids if source.topic in topics else ():
                name = source.name or "a source without a name"
                sources[vehicle].add(f"{name} ({source.topic})")
        for vehicle, names in sources.items():
            if len(names) > 1:
                found[tuple(sorted(names))][taker].append(vehicle)
    return found


def _id_twice(snapshot: Snapshot) -> Iterator[Finding]:
    for names, bridges in _ids_by_sources(snapshot).items():
        ids = next(iter(bridges.values()))
        comes = "comes" if len(ids) == 1 else "come"
        takers = _listed(sorted(filter(None, bridges)))
        takes = "take" if len(bridges) > 1 else "takes"
        drops = f"{takers} {takes} the first and drops the others" if takers else ""
        yield Finding(
            f"id_twice:{min(ids)}",
            f"{_vehicles(ids)} {comes} from {len(names)} sources: {' and '.join(names)}"
            + (f"; {drops}" if drops else ""),
            "give each vehicle an id of its own (id: in the fleet file, <name>.id of mission_node "
            "and ue_bridge_node), or stop one of the sources",
        )


def _not_finite(snapshot: Snapshot) -> Iterator[Finding]:
    for source in snapshot.sources:
        if source.not_finite:
            yield Finding(
                f"not_finite:{source.topic}",
                f"{source.topic}: {_vehicles(source.not_finite)} of {source.name} "
                "is at a NaN or infinite position or orientation, and is not drawn",
                f"fix {source.name}: an estimator that has not begun, or a division by zero, "
                "often gives NaN",
            )


def _lost_frames(snapshot: Snapshot) -> Iterator[Finding]:
    for topic, why in snapshot.lost_frames.items():
        yield Finding(
            f"frame:{topic}",
            f"{topic}: {why}",
            "publish that transform on /tf or /tf_static "
            "(tf2_ros' static_transform_publisher does), correct the message's frame_id, "
            "or list it in the parameter enu_frames or ned_frames if it is the world frame itself",
        )


def _frame_conflicts(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield one finding for all frames that are in two places for the same reason."""
    frames = defaultdict(list)
    for frame, why in snapshot.frame_conflicts.items():
        frames[why].append(frame)
    publishers = sorted({*snapshot.publishers("/tf"), *snapshot.publishers("/tf_static")})
    for why, names in frames.items():
        has = "frame {} has" if len(names) == 1 else "frames {} have"
        yield Finding(
            f"frame_twice:{names[0]}",
            f"{has.format(_listed(names))} {why}: what is placed in it jumps",
            f"keep one of its publishers, of {_listed(publishers)}, or give each a namespace "
            "(rfly up --namespace): it is part of the names of rfly_suite's frames",
        )


def _bad_transforms(snapshot: Snapshot) -> Iterator[Finding]:
    for why in snapshot.bad_transforms:
        yield Finding(
            f"transform:{why}",
            f"/tf: {why}, and is ignored",
            "mend its publisher: ros2 topic info -v /tf names all of them",
        )


def _robots(snapshot: Snapshot) -> Iterator[Finding]:
    for robot in snapshot.robots:
        if snapshot.publishers(robot.topic):
            continue

        # a topic of its type that is published may be meant
        topics = sorted(
            {end.topic for end in snapshot.endpoints if end.publishes and end.type == robot.type}
        )
        similar = get_close_matches(robot.topic, topics, 1) or topics[:_SHOWN]
        hint = "start it, or set "
        if similar:
            hint = f"{robot.type} is published on {_listed(similar)}; set "

        yield Finding(
            f"robot:{robot.topic}",
            f"no node publishes {robot.topic}, from which {robot.bridge} draws {robot.name} "
            f"(vehicle {robot.id})",
            f"{hint}the parameter {robot.name}.topic",
        )


# --- RflySim3D


def _destinations(snapshot: Snapshot) -> Iterator[Finding]:
    for to in snapshot.destinations:
        where = f"{to.host}:{to.port}"
        local = to.host in ("localhost", "127.0.0.1")
        key = f"destination:{to.address or to.host}:{to.port}"
        if local:
            rest = "If not: start it, or set host (rfly up --host) to the machine where it runs"
        else:
            rest = (
                f"Is its firewall open for UDP {to.port}? "
                f"Is {to.host} the right machine (rfly up --host)?"
            )

        if to.answer == "refused":
            yield Finding(
                key,
                f"{to.bridge}: nothing listens on {where}",
                f"is RflySim3D running there? {rest}",
            )
        elif to.answer == "unreachable":
            yield Finding(
                key,
                f"{to.bridge}: {to.host} is unreachable from here",
                "is that machine on, in this network, and the address right (rfly up --host)? "
                f"ping {to.host} shows it",
            )
        elif to.answer == "unknown":
            yield Finding(
                key,
                f"{to.bridge}: no machine is called {to.host}",
                "set host to its address (rfly up --host)",
            )
        elif not to.heard and not local:
            yield _unanswered(to, key, where, rest)


def _unanswered(to: Destination, key: str, where: str, rest: str) -> Finding:
    """Return the finding for an address from which nothing has come back.

    UDP has no receipts: an address without a machine is as silent as one where all is well.
    """
    if to.router:
        return Finding(
            key,
            f"{to.bridge}: {to.host} lies outside of this machine's networks, behind {to.router}, "
            "and nothing has ever come back from there",
            f"is RflySim3D running there? {rest} If all is well, "
            "request_vehicle_data:=true of ue_bridge_node shows it",
        )
    return Finding(
        key,
        f"{to.bridge}: {where} takes what is sent, and says nothing",
        f"is there no picture? {rest}",
        problem=False,
    )


# --- parameter files


def _parameter_files(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield names in the nodes' parameter files that none of them has.

    A section for all nodes may hold what only some have, and a file serve nodes that run elsewhere.
    """
    for status in snapshot.statuses:
        for name in status.values.get("undeclared_parameters", "").split():
            close = similar_parameter(name, MODULES)
            if close and not is_known(name):
                yield Finding(
                    f"parameter:{name}",
                    f"no node of rfly_suite has the parameter {name}, which the parameter file of "
                    f"{status.node} gives to all",
                    f"did you mean {close}?",
                )

        for name in status.values.get("sections_of_others", "").split():
            section = NodeSection(name, 0, {})
            meant = similar_node(name, snapshot.nodes)
            if meant and not any(section.fits(node) for node in snapshot.nodes):
                yield Finding(
                    f"section:{name}",
                    f"the parameter file of {status.node} names {name}, and no node that runs is "
                    "called so: its parameters have no effect",
                    f"did you mean {meant}?",
                )


# --- what the nodes say themselves


def _in_diagnostics(snapshot: Snapshot) -> Iterator[Finding]:
    for status in snapshot.statuses:
        if status.level != OK:
            yield from _explained(status, snapshot)


def _explained(report: DiagnosticReport, snapshot: Snapshot) -> Iterator[Finding]:
    """Yield a finding for each reason of a report, and its message if a reason is not explained.

    A reason that a look from outside explains better bears the key of that finding.
    """
    reasons = report.reasons
    for reason, subject in reasons:
        finding = _EXPLAINED.get(reason)
        if isinstance(finding, Finding):
            names = {"node": report.node, "subject": subject}
            names["topic"] = _absolute(subject, report.node)
            texts = {key: getattr(finding, key).format(**names) for key in ("key", "what", "do")}
            finding = dataclasses.replace(finding, **texts)
        elif finding is not None:
            finding = finding(subject, report, snapshot)
        if finding is not None:
            yield dataclasses.replace(finding, what=f"{report.node}: {finding.what}")

    if not reasons or any(reason not in _EXPLAINED for reason, _ in reasons):
        yield Finding(
            f"status:{report.node}:{report.task}",
            f"{report.node} ({report.task}): {report.message}",
            "see its log",
        )


_Explain = Callable[[str, DiagnosticReport, Snapshot], Finding]


def _no_states(seconds: str, report: DiagnosticReport, _snapshot: Snapshot) -> Finding:
    return Finding(
        f"status:{report.node}:no_states",
        f"no states for {seconds} s" if seconds else "no states yet",
        "publish vehicle_states (trajectory_node, mission_node …), or set the parameter vehicles",
    )


def _peer_mismatch(ends: str, _report: DiagnosticReport, _snapshot: Snapshot) -> Finding:
    topic, publisher, subscription = ends.split(" ") if ends.count(" ") == 2 else (ends, "", "")
    return Finding(
        f"mismatch:{topic}:{publisher}:{subscription}",
        f"{topic}: nothing gets from {publisher} to {subscription}",
        "make both ends agree in type and QoS",
    )


def _feedback_port_taken(port: str, report: DiagnosticReport, snapshot: Snapshot) -> Finding:
    number = int(port) if port.isdecimal() and len(port) <= _PORT_DIGITS else 0
    holder = snapshot.machine.port_holders.get(number, "")
    who = f"{holder} does. " if holder else ""
    return Finding(
        f"status:{report.node}:feedback_port_taken:{port}",
        f"another program holds the feedback port {port}",
        f"{who}End it, or set feedback_port of the bridge; "
        "feedback_share_port where it is RflySim's SDK",
    )


def _same_id(vehicle_id: str, _report: DiagnosticReport, snapshot: Snapshot) -> Finding:
    groups = [ids for each in _ids_by_sources(snapshot).values() for ids in each.values()]
    group = next((ids for ids in groups if vehicle_id in map(str, ids)), None)
    return Finding(
        f"id_twice:{vehicle_id if group is None else min(group)}",
        f"vehicle {vehicle_id} comes from two sources; the first keeps it",
        "give each vehicle an id of its own, or stop one of the sources",
    )


def _unknown_parameter(name: str, report: DiagnosticReport, _snapshot: Snapshot) -> Finding:
    executable = report.node.rpartition("/")[2]
    close = similar_parameter(name, [executable]) if executable in MODULES else ""
    return Finding(
        f"status:{report.node}:unknown_parameter:{name}",
        f"it has no parameter {name}, which it was given at its start",
        f"did you mean {close}?" if close else f"see ros2 param list {report.node}",
    )


_OLD_STAMPS = Finding(
    "status:{node}:old_stamps:{subject}",
    "{subject}: states are dropped for their stamps",
    "its stamps run backwards or lag: set that machine's clock (chrony), or max_age of the bridge",
)
_EXPLAINED: Mapping[Reason, Finding | _Explain] = {
    Reason.NO_STATES: _no_states,
    Reason.NO_TERRAIN_MAP: Finding("no_map", "no terrain_map has come yet", _START_TERRAIN),
    Reason.NO_MAP_LOADED: Finding(
        "status:{node}:no_map_loaded", "no map is loaded: {subject}", _BAD_MAP
    ),
    Reason.CLOCK_STOPPED: Finding(
        "clock",
        "/clock has not moved for {subject} s",
        "use_sim_time is on: start or resume what publishes /clock, or set it to false",
    ),
    Reason.CLOCK_SET_BACK: Finding(
        "status:{node}:clock_set_back:{subject}",
        "{subject}: its stamps went back, and it started anew",
        "nothing to do after a replay that began again or a restart; "
        "else set that machine's clock (chrony), or find the second publisher of this source",
        problem=False,
    ),
    Reason.PEER_MISMATCH: _peer_mismatch,
    Reason.WINDOW_REFUSED: Finding(
        "destination:{subject}", "nothing listens on {subject}", _IS_RFLYSIM3D_RUNNING
    ),
    Reason.WINDOW_UNREACHABLE: Finding(
        "destination:{subject}", "{subject} is unreachable", _IS_RFLYSIM3D_RUNNING
    ),
    Reason.FEEDBACK_PORT_TAKEN: _feedback_port_taken,
    Reason.NO_SENSOR_DATA: Finding(
        "status:{node}:no_sensor_data:{subject}",
        "no data on port {subject}",
        "is RflySim3D running, at the node's host and window? Is RflySim3D's sensor licence "
        "enough (free edition: three sensors of vehicle 1)? Does its map have sensors "
        "(VisionRingBlank sends no Mid-360 data)? If it runs elsewhere: is bind not loopback, and "
        "the firewall open for UDP {subject}?",
    ),
    Reason.NO_COPTERSIM_DATA: Finding(
        "status:{node}:no_coptersim_data:{subject}",
        "no data on port {subject}",
        "does CopterSim run, with this vehicle's id? Does it send to this machine, with UDP mode "
        "UDP_Full or UDP_Simple? If it runs elsewhere: is bind not loopback, host its address, and "
        "the firewall open for UDP {subject}?",
    ),
    Reason.CONFIGURED: _same_id,
    Reason.OTHER_SOURCE: _same_id,
    Reason.UNKNOWN_FRAME: Finding(
        "frame:{topic}",
        "{subject}: no transform connects its frame to the map",
        "publish that transform on /tf, or correct the message's frame_id",
    ),
    Reason.NOT_FINITE: Finding(
        "not_finite:{topic}",
        "{subject}: a position or orientation is NaN or infinite",
        "mend its publisher: NaN is not drawn",
    ),
    Reason.BAD_QUATERNION: Finding(
        "status:{node}:bad_quaternion:{subject}",
        "{subject}: states are dropped for their orientation",
        "its orientation is no rotation: fill in x, y, z, w of length 1 (no turn: 0, 0, 0, 1)",
    ),
    Reason.TOO_FAR: Finding(
        "status:{node}:too_far:{subject}",
        "{subject}: states are dropped, as too far away or too fast",
        "give metres in the map's frame, and m/s: other units, or no position yet?",
    ),
    Reason.UNKNOWN_PARAMETER: _unknown_parameter,
    Reason.STALE: _OLD_STAMPS,
    Reason.TOO_OLD: _OLD_STAMPS,
}
"""Findings by the reason of a report, or functions of its subject that return one.

In the texts {subject} stands for the reason's subject, {topic} for the full name of a topic that
this is, {node} for the node.
"""


def _absolute(topic: str, node: str) -> str:
    """Return a topic's full name, from the namespace of the node that names it."""
    return topic if topic.startswith("/") else f"{node.rpartition('/')[0]}/{topic}"


# --- what is worth knowing


def _worth_knowing(snapshot: Snapshot) -> Iterator[Finding]:
    if suite_nodes(snapshot) and snapshot.machine.other_domains:
        domains = ", ".join(map(str, snapshot.machine.other_domains[:_SHOWN]))
        yield Finding(
            "other_domains",
            f"other programs of this machine talk in ROS domain {domains}, "
            f"unheard in {snapshot.domain_id}",
            "a node that is missing here may run there: set the same ROS_DOMAIN_ID",
            problem=False,
        )

    states = [end.topic for end in snapshot.endpoints if end.type == STATES_TYPE]
    topics = {topic for topic in states if not topic.endswith("removed_vehicles")}
    shown = {
        end.topic
        for end in snapshot.endpoints
        if end.type == STATES_TYPE and _is_bridge(end.node, snapshot)
    }

    for topic in sorted(topics - shown):
        yield Finding(
            f"not_shown:{topic}",
            f"no ue_bridge_node takes {topic}: RflySim3D shows none of it",
            "start one in that namespace, or remap its vehicle_states",
            problem=False,
        )


def _vehicles(ids: Sequence[int] | frozenset[int]) -> str:
    shown = ", ".join(map(str, sorted(ids)[:_SHOWN]))
    more = f" and {len(ids) - _SHOWN} more" if len(ids) > _SHOWN else ""
    return f"{'vehicle' if len(ids) == 1 else 'vehicles'} {shown}{more}"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


_RULES: Sequence[Callable[[Snapshot], Iterator[Finding]]] = (
    _shared_memory,
    _multicast,
    _nothing_runs,
    _twice,
    _silent_nodes,
    _no_map,
    _mismatches,
    _id_twice,
    _not_finite,
    _lost_frames,
    _frame_conflicts,
    _bad_transforms,
    _robots,
    _destinations,
    _parameter_files,
    _in_diagnostics,
    _worth_knowing,
)
