#!/usr/bin/env bash
# Records what was missing:
#   @MISSING@
# Made by `tracelens sources --next-time`@VERSION@.
# Read it, then: bash record.sh   (stop with Ctrl-C)
set -euo pipefail
base_url="${BASE_URL:-http://127.0.0.1:8000}" # of the server
folder="${FOLDER:-recording}"                 # everything is written here
loops=()
mkdir -p "$folder"
