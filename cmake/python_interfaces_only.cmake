# -DRFLY_PYTHON_INTERFACES_ONLY=ON, for the bare machine's .venv: rosidl generates what nodes in Python use, which is half of
# it. Python messages stand on the C type support; introspection stays, since Fast DDS asks for it.
if(RFLY_PYTHON_INTERFACES_ONLY)
  list(FILTER AMENT_EXTENSIONS_rosidl_generate_idl_interfaces EXCLUDE REGEX "_cpp")
endif()
