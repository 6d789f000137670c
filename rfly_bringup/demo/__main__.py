"""`python -m rfly_bringup.demo`."""

from rfly_bringup.demo.demo import main

main()
