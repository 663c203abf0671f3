#!/bin/sh
# Zig's C++ compiler for Macs, under one name, so that CMake and ccache take it for a compiler.
exec "$(dirname "$0")/../../build/venv/bin/python" -m ziglang c++ -target aarch64-macos.13.0 "$@"
