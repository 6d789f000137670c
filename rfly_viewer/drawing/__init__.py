"""Meshes, textures and labels that the browser draws."""
