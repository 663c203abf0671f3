#!/usr/bin/env bash
# Installs the packages of tools/packages.tsv that are missing: tools/setup.sh run|test|arm64
# Debian and Ubuntu: apt, as root or through sudo. macOS: Homebrew. Elsewhere it lists what is missing and fails.
set -euo pipefail

purpose=${1:?"usage: tools/setup.sh run|test|arm64"}
table="$(dirname "$0")/packages.tsv"

say() { echo "setup: $*" >&2; }

# Runs a command whose output matters only if it fails.
quietly() {
  local output
  if ! output=$("$@" 2>&1); then
    echo "$output" >&2
    say "failed: $*"
    exit 1
  fi
}

# The table's column for this system, or nothing.
system_column() {
  if [ "$(uname -s)" = Darwin ]; then
    echo homebrew
  elif [ -r /etc/os-release ]; then
    # shellcheck source=/dev/null
    (. /etc/os-release && echo "${ID:-}-${VERSION_ID:-}")
  fi
}

# The entries of one column for this purpose, one a line; fails when the table has no such column.
entries() {
  awk -F '\t' -v purpose="$purpose" -v column="$1" '
    /^#/ { next }
    !at { for (i = 1; i <= NF; i++) if ($i == column) at = i
          if (!at) exit 1
          next }
    ($1 == "run" || $1 == purpose) && $at != "-" { print $at }' "$table"
}

missing_debian_packages() {
  local wanted
  wanted=$(entries "$1")
  # One package name a line, none with spaces.
  # shellcheck disable=SC2086
  echo "$wanted" | grep -vxF -f <(dpkg-query -W -f='${db:Status-Status} ${Package}\n' $wanted 2>/dev/null |
    sed -n 's/^installed //p') || true  # grep finds nothing when all are installed
}

missing_brew_formulas() {
  local formula prefix
  prefix=$(brew --prefix)
  entries homebrew | while read -r formula; do
    [ -d "$prefix/opt/$formula" ] || echo "$formula"
  done
}

# A header is a probe with a dot in its name; everything else is a command.
missing_probes() {
  local probe
  entries probe | while read -r probe; do
    case "$probe" in
      *.h | *.hpp) echo "#include <$probe>" | c++ -E -x c++ - >/dev/null 2>&1 || echo "$probe" ;;
      *) command -v "$probe" >/dev/null || echo "$probe" ;;
    esac
  done
}

install_with_apt() {
  local as_root=()
  if [ "$(id -u)" != 0 ]; then
    if ! command -v sudo >/dev/null; then
      say "these packages are missing, and only root may install them (there is no sudo here):"
      say "  apt-get install --no-install-recommends $*"
      exit 1
    fi
    as_root=(sudo)
  fi
  say "installing $*"
  as_root+=(env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0)
  quietly "${as_root[@]}" update
  quietly "${as_root[@]}" install --no-install-recommends "$@"
}

install_with_brew() {
  say "installing $*"
  quietly brew install --quiet "$@"
}

column=$(system_column)
case "$column" in
  debian-* | ubuntu-*)
    if entries "$column" >/dev/null; then
      missing=$(missing_debian_packages "$column")
      # shellcheck disable=SC2086
      [ -z "$missing" ] || install_with_apt $missing
      exit 0
    fi
    ;;
  homebrew)
    if ! xcode-select -p >/dev/null 2>&1; then
      say "the Xcode command line tools are missing; install them with: xcode-select --install"
      exit 1
    fi
    if command -v brew >/dev/null; then
      missing=$(missing_brew_formulas)
      # shellcheck disable=SC2086
      [ -z "$missing" ] || install_with_brew $missing
      exit 0
    fi
    say "Homebrew is missing; without it, install by hand what the next line names"
    ;;
esac

missing=$(missing_probes)
if [ -n "$missing" ]; then
  say "no package list for this system (${column:-unknown}); these commands and headers are missing:" \
    "$(echo "$missing" | tr '\n' ' ')"
  say "tools/packages.tsv says what each is for and what Debian calls it"
  exit 1
fi
