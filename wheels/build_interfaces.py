# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Build packages of messages, services and actions for nodes in Python, without CMake.

    build_interfaces.py BUILD PREFIX PACKAGE SOURCE [PACKAGE SOURCE ...]

It runs in .venv. The generators are ROS's own. All of them run in this process, so that each
interface is parsed once. Each library is compiled from one file, which includes all files generated
for it: most of the time went into parsing the same headers.

Python's messages use the C type support. Fast DDS needs introspection too.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, ClassVar

import em
import numpy as np
import rosidl_parser.parser
from rosidl_adapter import convert_to_idl
from rosidl_cli.command.helpers import generate_visibility_control_file
from rosidl_generator_c import generate_c as generate_structures
from rosidl_generator_py import generate_py
from rosidl_generator_type_description import generate_type_hash
from rosidl_typesupport_c import generate_c as generate_dispatch
from rosidl_typesupport_fastrtps_c import generate_typesupport_fastrtps_c
from rosidl_typesupport_introspection_c import generate_c as generate_introspection

VENV = Path(sys.prefix)
SHARE = VENV / "share"
KINDS = ("msg", "srv", "action")
TYPE_SUPPORTS = ("rosidl_typesupport_fastrtps_c", "rosidl_typesupport_introspection_c")
USED_BY_ALL = (
    "action_msgs",
    "builtin_interfaces",
    "service_msgs",
    "unique_identifier_msgs",
)
"""Packages whose messages rosidl adds to services and actions."""
LINKED = (
    *(
        "rosidl_typesupport_c",
        "rosidl_typesupport_fastrtps_c",
        "rosidl_typesupport_fastrtps_cpp",
    ),
    *("rosidl_typesupport_introspection_c", "rosidl_runtime_c", "rcutils", "fastcdr"),
)


class Interpreter(em.Interpreter):
    """An EmPy interpreter that reads each template once.

    Reading it once for each interface took two thirds of the time.
    """

    _read: ClassVar[dict[str, list[Any]]] = {}

    def string(self, string: str, locals: Any = None, dispatcher: Any = None) -> None:
        """Expand a template."""
        if string not in self._read:
            scanner = em.Scanner(self.config, self.getContext(), self.currents, string + "@\n")
            self._read[string] = list(iter(scanner.one, None))
        self.runSeveral(self._read[string], locals)


em.Interpreter = Interpreter
rosidl_parser.parser.parse_idl_string = cache(rosidl_parser.parser.parse_idl_string)


@dataclass(frozen=True)
class Library:
    """A shared library of one package: the generator of its sources, and which files they are."""

    kind: str
    generate: Callable[[str], object]
    sources: str
    compiler: str
    visibility: bool = False


LIBRARIES = (
    Library("rosidl_generator_c", generate_structures, "**/*.c", "cc", True),
    Library(
        "rosidl_typesupport_introspection_c",
        generate_introspection,
        "**/*.c",
        "cc",
        True,
    ),
    Library(
        "rosidl_typesupport_fastrtps_c",
        generate_typesupport_fastrtps_c,
        "**/*.cpp",
        "c++",
        True,
    ),
    Library(
        "rosidl_typesupport_c",
        partial(generate_dispatch, type_supports=TYPE_SUPPORTS),
        "**/*.cpp",
        "c++",
    ),
    Library(
        "rosidl_generator_py",
        partial(generate_py, typesupport_impls=["rosidl_typesupport_c"]),
        "*/*_s.c",
        "cc",
    ),
)


class Package:
    """The package's files and their output: a folder in `build` for each library."""

    # libraries of all packages, for the progress
    compiled = 0
    wanted = 0

    def __init__(self, name: str, source: Path, build: Path, prefix: Path) -> None:
        self.name = name
        self.source = source
        self.build = build
        self.prefix = prefix

        self.files = [
            file.relative_to(source)
            for kind in KINDS
            for file in sorted(source.glob(f"{kind}/*.{kind}"))
        ]

        self.idl = build / "idl" / name
        self.descriptions = build / "descriptions" / name
        self.installed: list[Path] = []
        Package.wanted += len(LIBRARIES) + 1

    def arguments(self, folder: str, **more: object) -> str:
        """Write the arguments of a generator; return the file's path."""
        file = self.build / f"{folder}.json"
        arguments = {
            "package_name": self.name,
            "output_dir": str(self.build / folder / self.name),
            "template_dir": str(SHARE / folder / "resource"),
            "idl_tuples": [f"{self.idl}:{file.with_suffix('.idl')}" for file in self.files],
            "ros_interface_files": [str(self.source / file) for file in self.files],
            "ros_interface_dependencies": [],
            "target_dependencies": [],
            **more,
        }
        file.write_text(json.dumps(arguments), encoding="utf-8")
        return str(file)

    def describe(self) -> None:
        """Write each interface as IDL, and its description with its hash."""
        for file in self.files:
            convert_to_idl(self.source, self.name, file, self.idl)
        others = [f"{folder.name}:{folder}" for folder in SHARE.iterdir() if folder.is_dir()]
        generate_type_hash(self.arguments("descriptions", include_paths=others))

    def generate(self, library: Library) -> None:
        """Write the sources of a library."""
        (self.build / library.kind / self.name).mkdir(parents=True)
        idl = [file.with_suffix(".idl") for file in self.files]
        described = [f"{file}:{self.descriptions / file.with_suffix('.json')}" for file in idl]
        library.generate(self.arguments(library.kind, type_description_tuples=described))
        if library.visibility:
            header = f"{library.kind}__visibility_control.h"
            generate_visibility_control_file(
                package_name=self.name,
                template_path=SHARE / library.kind / "resource" / f"{header}.in",
                output_path=self.build / library.kind / self.name / "msg" / header,
            )

    def compile(self, library: Library) -> None:
        """Compile all sources of a library as one."""
        folder = self.build / library.kind / self.name
        self._compile(
            library.compiler,
            sorted(folder.glob(library.sources)),
            f"lib{self.name}__{library.kind}.so",
        )

    def compile_module(self) -> Path:
        """Compile the Python module with the type support of all messages; return its path."""
        folder = self.build / "rosidl_generator_py" / self.name
        module = f"{self.name}_s__rosidl_typesupport_c.so"
        own = ("rosidl_typesupport_c", "rosidl_generator_py")
        self._compile("cc", folder.glob("*.ep.rosidl_typesupport_c.c"), module, own)
        return self.build / module

    def _compile(
        self,
        compiler: str,
        sources: Iterable[Path],
        output: str,
        own: Iterable[str] = (),
    ) -> None:
        language, standard = ("c", "gnu11") if compiler == "cc" else ("c++", "gnu++17")
        kinds = [library.kind for library in LIBRARIES]
        sources = list(sources)

        # these define the same names, so each is compiled apart
        apart = [source for source in sources if source.name.endswith("__description.c")]

        # libraries of other packages
        uses = {
            part
            for file in self.idl.rglob("*.idl")
            for part in re.findall(r'#include "(\w+)/', file.read_text("utf-8"))
        }
        links = [
            f"{package}__{kind}"
            for package in sorted(uses.union(USED_BY_ALL) - {self.name})
            for kind in kinds
        ]

        own = own or ([] if output.endswith("rosidl_generator_c.so") else ["rosidl_generator_c"])

        command = [
            *shlex.split(os.environ.get("CC" if compiler == "cc" else "CXX", compiler)),
            *(
                "-x",
                language,
                f"-std={standard}",
                "-O0",
                "-fPIC",
                "-shared",
                "-w",
                f'-DROS_PACKAGE_NAME="{self.name}"',
            ),
            *(f"-I{self.build / kind}" for kind in kinds),
            *(
                f"-isystem{folder}"
                for folder in ((VENV / "include"), *(VENV / "include").iterdir())
            ),
            *(f"-isystem{folder}" for folder in (sysconfig.get_path("include"), np.get_include())),
            *(
                "-",
                "-x",
                "none",
                *apart,
                "-o",
                self.build / output,
                f"-L{self.build}",
                f"-L{VENV / 'lib'}",
                "-Wl,--as-needed",
            ),
            *(f"-l{name}" for name in (*(f"{self.name}__{kind}" for kind in own), *links, *LINKED)),
        ]

        # one file that includes all
        text = "".join(f'#include "{source}"\n' for source in sources if source not in apart)
        process = subprocess.run(list(map(str, command)), input=text, encoding="utf-8", check=False)
        if process.returncode:
            sys.exit(f"{output}: {command[0]} failed")

        Package.compiled += 1
        progress = f"[{Package.compiled}/{Package.wanted}] {output}"
        # not sys.stdout: EmPy may have replaced it for a template
        print(progress, file=sys.__stdout__, flush=True)

    def install(self, module: Path) -> None:
        """Copy everything to its place and write a list of it, as CMake would."""
        modules = Path(sysconfig.get_path("purelib", vars={"base": str(self.prefix)})) / self.name
        share = self.prefix / "share"

        # libraries
        for library in LIBRARIES:
            self._copy(self.build / f"lib{self.name}__{library.kind}.so", self.prefix / "lib")

        # Python
        python = self.build / "rosidl_generator_py" / self.name
        (python / "__init__.py").touch()
        self._copy(module, modules)
        for file in python.rglob("*.py"):
            self._copy(file, modules / file.parent.relative_to(python))

        # interfaces and the package's description
        for file in self.files:
            for root, suffix in (
                (self.source, file.suffix),
                (self.idl, ".idl"),
                (self.descriptions, ".json"),
            ):
                self._copy(root / file.with_suffix(suffix), share / self.name / file.parent)
        self._copy(self.source / "package.xml", share / self.name)

        # entries in ament's index
        names = sorted(
            str(name) for file in self.files for name in (file, file.with_suffix(".idl"))
        )
        for resource, text in (
            ("packages", ""),
            ("rosidl_interfaces", "\n".join(names)),
        ):
            marker = self.build / resource / self.name
            marker.parent.mkdir()
            marker.write_text(text, encoding="utf-8")
            self._copy(marker, share / "ament_index" / "resource_index" / resource)

        manifest = "".join(f"{file}\n" for file in self.installed)
        (self.build / "install_manifest.txt").write_text(manifest, encoding="utf-8")

    def _copy(self, file: Path, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        target = folder / file.name
        target.unlink(missing_ok=True)  # a new file: a node may be running with the old one
        shutil.copy2(file, target)
        self.installed.append(target)


def start(package: Package, pool: ThreadPoolExecutor) -> list[Future[None]]:
    """Generate the sources of a package; return the jobs that compile them."""
    package.build.mkdir(parents=True)
    package.describe()
    first, *others = LIBRARIES

    package.generate(first)  # the others include its headers and link it
    jobs = [pool.submit(package.compile, first)]

    def compile_after_first(library: Library) -> None:
        jobs[0].result()
        package.compile(library)

    for library in others:
        package.generate(library)
        jobs.append(pool.submit(compile_after_first, library))
    return jobs


def main(build: str, prefix: str, *sources: str) -> None:
    """Build and install packages; `sources` is a name and a folder for each."""
    named = zip(sources[::2], sources[1::2], strict=True)
    packages = [
        Package(name, Path(source), Path(build) / name, Path(prefix)) for name, source in named
    ]
    with ThreadPoolExecutor() as pool:
        for package, jobs in [(package, start(package, pool)) for package in packages]:
            for job in jobs:
                job.result()
            package.install(package.compile_module())


if __name__ == "__main__":
    main(*sys.argv[1:])
