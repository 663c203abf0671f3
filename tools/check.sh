#!/usr/bin/env bash
# shellcheck disable=SC2317  # the functions are called by name, through check()
# Checks what needs no build: format, layers, spelling, shell scripts: tools/check.sh [--tidy | --tidy-all]
# --tidy adds clang-tidy on the C++ files that differ from origin/main (or from the last commit's parent),
# --tidy-all on all of them; both read the compile commands of the dev preset, in build/tidy.
set -euo pipefail
cd "$(dirname "$0")/.."

case "${1:-}" in
  "" | --tidy | --tidy-all) ;;
  *) echo "usage: tools/check.sh [--tidy | --tidy-all]" >&2 && exit 2 ;;
esac

# Homebrew keeps clang 19 out of the PATH and calls its tools by their plain names.
if [ "$(uname -s)" = Darwin ]; then
  llvm=$(brew --prefix llvm@19)/bin
  clang_format=$llvm/clang-format clang_tidy=$llvm/clang-tidy
else
  clang_format=clang-format-19 clang_tidy=clang-tidy-19
fi

failed=0
check() {
  local name=$1
  shift
  if "$@"; then
    echo "check: $name: ok"
  else
    echo "check: $name: FAILED"
    failed=1
  fi
}

cpp_files() { git ls-files -- '*.h' '*.cpp' '*.inl'; }

format() { cpp_files | xargs "$clang_format" --dry-run -Werror; }

# Golden data and fuzz corpora have other languages in them, and bytes that are no text.
spelling() { git ls-files -- . ':!tests/golden' ':!tests/fuzz/corpus' | xargs codespell; }

shell_scripts() { git ls-files -- run test .ci/run '*.sh' | xargs shellcheck; }

# The commit that a change is compared with.
base_commit() {
  local base
  base=$(git merge-base HEAD origin/main 2>/dev/null || true)
  if [ -z "$base" ] || [ "$base" = "$(git rev-parse HEAD)" ]; then
    base=HEAD~1
  fi
  git rev-parse --verify --quiet "$base"
}

files_to_tidy() {
  local base
  if [ "$1" = --tidy-all ]; then
    git ls-files -- 'src/*.cpp' 'app/*.cpp' 'tests/*.cpp'
  elif base=$(base_commit); then
    git diff --name-only --diff-filter=d "$base" -- 'src/*.cpp' 'app/*.cpp' 'tests/*.cpp'
  fi
}

tidy() {
  local files
  files=$(files_to_tidy "$1")
  [ -n "$files" ] || return 0
  # Without precompiled headers, which would have to be built first, and with a command for each file.
  cmake --preset dev -B build/tidy -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON -DHEARTH_UNITY=OFF >/dev/null
  # Two files a call, so that xargs keeps every core busy.
  echo "$files" | xargs -P "$(getconf _NPROCESSORS_ONLN)" -n 2 "$clang_tidy" -p build/tidy --quiet
}

check format format
check layers python3 tools/check_layers.py
check "GPU kernels" python3 tools/lint_kernels.py
check spelling spelling
check "shell scripts" shell_scripts
[ -z "${1:-}" ] || check tidy tidy "$1"
exit "$failed"
