#!/usr/bin/env bash
# Every check, cheap ones first; stops at the first failure. Each step prints its seconds and, when
# it fails, the end of its output. `bash ci/all.sh` is what CI runs and what a person runs too.
set -euo pipefail
cd "$(dirname "$0")/.."

logs=${CARGO_TARGET_DIR:-target}/ci
mkdir -p "$logs"
started=$SECONDS

step() { # name command...
  local name=$1 from=$SECONDS
  shift
  local log=$logs/${name// /-}.log
  if "$@" >"$log" 2>&1; then
    # What a check left out is said here too, not only in its log.
    printf '%-28s ok    %4d s\n' "$name" $((SECONDS - from))
    grep -hE '^ *skipped: ' "$log" | sort -u | sed 's/^ */    /' | head -12 || true
  else
    local code=$?
    printf '%-28s FAILED (exit %d) after %d s\n' "$name" "$code" $((SECONDS - from))
    tail -n 60 "$log"
    exit 1
  fi
}

# Optimised across crates, the models and the program would take longer to build than to run here.
quick_release() { CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 "$@"; }
loom() {
  RUSTFLAGS="--cfg loom" quick_release cargo test --release --target-dir "${CARGO_TARGET_DIR:-target}/loom" \
    -p cairn-flags -p cairn-percpu -p cairn-extents loom
}
docs() { RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --all-features --locked; }
spelling() {
  if command -v typos >/dev/null 2>&1; then typos; else echo "skipped: typos is not installed"; fi
}

step "format" cargo fmt --all --check
step "licences" python3 ci/licenses.py
step "spelling" spelling
step "clippy" cargo clippy --workspace --all-targets --all-features --locked -- -D warnings
step "tests" cargo test --workspace --features cairn-tui/tls --locked -- --nocapture --test-threads 2
step "docs" docs
step "loom models" loom
step "install" quick_release cargo install --quiet --locked --path apps/cairn --root "${CARGO_TARGET_DIR:-target}/install"
cairn=${CARGO_TARGET_DIR:-$PWD/target}/install/bin/cairn
step "commands" bash ci/smoke.sh "$cairn"
# The program that the tests have built knows TLS.
step "nbd" bash ci/nbd.sh "$cairn" "${CARGO_TARGET_DIR:-$PWD/target}/debug/cairn"
step "terminal" bash ci/tmux.sh "$cairn"
# Without building each package once more: the steps before have built the same sources.
step "package" cargo package --workspace --locked --quiet --no-verify

echo "all checks in $((SECONDS - started)) s"
# The last line: the counts of all test binaries together, as the runner printed them.
awk '/^test result:/ { p += $4; f += $6; i += $8 } END { printf "%d passed, %d failed, %d skipped\n", p, f, i }' \
  "$logs/tests.log" "$logs/loom-models.log"
