"""Sampling kernels: compiled, NumPy form, tables between."""

from rfly_common.kernels.jit import KernelModule

KERNELS = KernelModule("rfly_trajectory.kernels.motion_kernels")
