#!/bin/bash
# built.sh PROGRAM: there is one.
set -euo pipefail
[[ -s $1 ]]
