# The ROS wheels export include folders of the machine that built them, and CMake refuses an imported target whose include
# folder does not exist. Drop such folders; with an ordinary ROS all of them exist and nothing changes.
# A function, called in the directory scope that found the packages: imported targets are visible there only.
function(rfly_drop_missing_includes)
  get_property(targets DIRECTORY PROPERTY IMPORTED_TARGETS)
  foreach(target IN LISTS targets)
    get_target_property(dirs ${target} INTERFACE_INCLUDE_DIRECTORIES)
    if(NOT dirs)
      continue()
    endif()
    set(kept)
    foreach(dir IN LISTS dirs)
      if(dir MATCHES "\\$<" OR EXISTS "${dir}")
        list(APPEND kept "${dir}")
      endif()
    endforeach()
    set_target_properties(${target} PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${kept}")
  endforeach()
endfunction()
