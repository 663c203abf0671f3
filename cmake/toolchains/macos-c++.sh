#!/bin/sh
# Zig's C++ compiler for Macs, under one name, so that CMake and ccache take it for a compiler. CMake asks who it is with a
# program, for which Zig would build its own libraries for a minute; an object says the same.
case "$*" in
  *CompilerId.c*) set -- -c "$@" ;;
esac
exec "$(dirname "$0")/../../build/venv/bin/python" -m ziglang c++ -target aarch64-macos.13.0 "$@"
