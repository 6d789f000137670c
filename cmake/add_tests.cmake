# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

# Tests of `colcon test`: one for each folder of tests, so that a crash or the time limit ends only one of them, and one
# for all tests marked slow, with the label "slow": colcon test --ctest-args -LE slow leaves it out.
find_package(ament_cmake_pytest REQUIRED)

# rfly_add_tests(<name> <path> <marks> <seconds> [<pytest option>...])
function(rfly_add_tests name path marks seconds)
  list(JOIN ARGN " " options)
  ament_add_pytest_test(${name} ${path} TIMEOUT ${seconds}
    ENV "PYTEST_ADDOPTS=-m '${marks}' --continue-on-collection-errors --durations=15 ${options}")
endfunction()

foreach(folder attacks benchmarks examples fuzz rfly_amphibious rfly_autonomy rfly_bringup
    rfly_collision rfly_common rfly_lab rfly_mavlink rfly_missions rfly_sensing rfly_terrain
    rfly_trajectory rfly_ue_bridge rfly_viewer)
  rfly_add_tests(${folder} test/${folder} "not slow" 1200)
endforeach()
rfly_add_tests(tree test "not slow" 1200 --ignore-glob=${CMAKE_CURRENT_SOURCE_DIR}/test/*/*)
rfly_add_tests(slow test slow 1800)
set_tests_properties(slow PROPERTIES LABELS "pytest;slow")
