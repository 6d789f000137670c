# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

# Include folders of targets that exist on one machine only: those that ROS's wheels name, and those that this package
# would name. They are Python's and NumPy's folders in each `<package>__rosidl_generator_py`, a target of the Python
# extension that nobody includes. On an installed ROS both functions change nothing that is used.

# Drop folders that do not exist from all imported targets. The wheels name folders of the machine that built them, at
# which CMake would stop. Call it after the last find_package, in the same CMakeLists.txt.
function(rfly_drop_missing_includes)
  get_property(targets DIRECTORY PROPERTY IMPORTED_TARGETS)
  foreach(target IN LISTS targets)
    get_target_property(folders ${target} INTERFACE_INCLUDE_DIRECTORIES)
    if(NOT folders)
      continue()
    endif()

    set(kept)
    foreach(folder IN LISTS folders)
      if(folder MATCHES "\\$<" OR EXISTS "${folder}")
        list(APPEND kept "${folder}")
      endif()
    endforeach()
    set_target_properties(${target} PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${kept}")
  endforeach()
endfunction()

# Keep the absolute include folders of a target out of its exported form. CMake refuses to export one that lies in the
# source tree, where .venv is.
function(rfly_export_no_absolute_include target)
  get_target_property(folders ${target} INTERFACE_INCLUDE_DIRECTORIES)
  if(folders)
    list(TRANSFORM folders REPLACE "^(/.*)$" "$<BUILD_INTERFACE:\\1>")
    set_target_properties(${target} PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${folders}")
  endif()
endfunction()
