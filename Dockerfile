# rfly_suite with ROS 2 Jazzy and RViz:
#
#   docker build -t rfly_suite .
#   docker run --rm -it --network host -e DISPLAY -v /tmp/.X11-unix:/tmp/.X11-unix rfly_suite
FROM ros:jazzy
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
WORKDIR /workspace

# the dependencies in package.xml, RViz and MCAP included: a layer that is reused until that file changes
COPY package.xml src/rfly_suite/package.xml
RUN apt-get update \
 && apt-get install -y --no-install-recommends python3-pip \
 && rosdep update --rosdistro jazzy \
 && RFLY_EXTRAS=true PIP_BREAK_SYSTEM_PACKAGES=1 rosdep install --from-paths src --ignore-src -y --rosdistro jazzy \
 && rm -rf /var/lib/apt/lists/*
# numba compiles the kernels; Ubuntu 24.04 has no package of it
RUN pip install --break-system-packages --no-cache-dir "numba>=0.59"

COPY . src/rfly_suite
RUN source /opt/ros/jazzy/setup.bash && colcon build
RUN echo "source /workspace/install/setup.bash" >> /etc/bash.bashrc

ENTRYPOINT ["/bin/bash", "-c", "source /workspace/install/setup.bash && exec \"$@\"", "--"]
CMD ["ros2", "launch", "rfly_suite", "rfly.launch.py", "rviz:=true"]
