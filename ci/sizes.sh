#!/usr/bin/env bash
# Lists source files above 600 lines for a reviewer; fails nothing.
set -euo pipefail
cd "$(dirname "$0")/.."
git ls-files '*.rs' | xargs wc -l | awk '$2 != "total" && $1 > 600 { print $1, $2 }' | sort -rn
