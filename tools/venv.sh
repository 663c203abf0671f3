#!/usr/bin/env bash
# Makes the virtual environment build/venv: tools/venv.sh [requirements.txt]
# With a file of pinned requirements it installs them, unless the same file was installed before.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
venv="$root/build/venv"
requirements=${1:-}

if ! [ -x "$venv/bin/pip" ]; then
  echo "setup: making build/venv" >&2
  mkdir -p "$root/build"
  python3 -m venv --clear "$venv" >&2
fi

installed="$venv/installed-requirements.txt"
if [ -n "$requirements" ] && ! cmp -s "$requirements" "$installed"; then
  echo "setup: installing $(basename "$requirements") into build/venv" >&2
  if ! "$venv/bin/pip" install --quiet --disable-pip-version-check --requirement "$requirements" >&2; then
    echo "setup: pip could not install $requirements; is PyPI, the Python package index, reachable from here?" >&2
    exit 1
  fi
  cp "$requirements" "$installed"
fi
