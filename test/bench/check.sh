#!/bin/sh
# Runs the benchmark; anything to look at is a failure.
exec "$@" --check
