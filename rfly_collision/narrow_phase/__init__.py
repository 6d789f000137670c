"""Narrow phase: contact points, normals, depths and times of impact."""
