# Every recipe is one plain command; CONTRIBUTING.md lists them for those without `just`.

# List the recipes.
default:
    @just --list

# Build and run cairn; without arguments the dashboard.
run *ARGS:
    cargo run --release -- {{ARGS}}

fmt:
    cargo fmt --all

lint:
    cargo clippy --workspace --all-targets --all-features -- -D warnings

test:
    cargo test --workspace

doc:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --all-features

# Model checking of the lock-free parts.
loom:
    RUSTFLAGS="--cfg loom" cargo test --release --target-dir target/loom -p cairn-flags -p cairn-percpu -p cairn-extents loom

# The bars: NAME is flags, percpu, extents, block, nbd, lab, ext4 or dash.
bench NAME:
    cargo bench -p {{ if NAME == "dash" { "cairn-tui" } else { "cairn-rivals" } }} --bench {{NAME}}

# The long forms of the tests: NAME is flags, percpu, extents, ext4 or lab; aa compares an arm with itself 200 times, or CAIRN_AA times.
soak NAME:
    cargo test --release {{ if NAME == "aa" { "-p cairn-lab --test aa" } else { "-p cairn-" + NAME } }} -- --ignored

# Renew the pictures in docs/ and the text snapshots after a wanted change of the screens.
bless:
    CAIRN_BLESS=1 INSTA_UPDATE=always cargo test -p cairn-tui

# Source files above 600 lines, for a reviewer; fails nothing.
sizes:
    bash ci/sizes.sh

ci:
    bash ci/all.sh
