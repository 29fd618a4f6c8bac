#!/usr/bin/env bash
# The published random-write command on Cairn and, by fio with io_uring, on the kernel's ext4 on a loop device in
# memory: five pairs in one run, interleaved. Needs root, loop devices, mkfs.ext4 and fio; says skipped otherwise.
# Usage: bash ci/rival-ext4.sh [CAIRN]      (SECONDS_EACH=5 PAIRS=5 SIZE=2G)
set -euo pipefail
cairn=${1:-${CARGO_TARGET_DIR:-target}/release/cairn}
pairs=${PAIRS:-5} each=${SECONDS_EACH:-5} size=${SIZE:-2G}

skip() { echo "skipped: $1"; exit 0; }
[ "$(id -u)" = 0 ] || skip "mounting needs root"
for tool in fio mkfs.ext4 losetup python3; do
  command -v "$tool" >/dev/null || skip "$tool is not installed"
done
[ -x "$cairn" ] || { echo "$cairn is not there: cargo build --release"; exit 2; }

work=$(mktemp -d)
loop=
clean() {
  mountpoint -q "$work/mnt" && umount "$work/mnt"
  [ -n "$loop" ] && losetup -d "$loop"
  mountpoint -q "$work/mem" && umount "$work/mem"
  rm -rf "$work"
}
trap clean EXIT
mkdir "$work/mem" "$work/mnt"
mount -t tmpfs -o size=6g none "$work/mem" || skip "tmpfs cannot be mounted"
truncate -s 4G "$work/mem/disk"
loop=$(losetup --show -f "$work/mem/disk") || skip "there is no loop device"
mkfs.ext4 -q "$loop"
mount "$loop" "$work/mnt" || skip "ext4 cannot be mounted"

job=(-name=randwrite -numjobs=8 -filename="$work/mnt/test1" -rw=randwrite -direct=1 -iodepth=64 -sync=0
  -norandommap -group_reporting -runtime="$each" -time_based -bs=4k -size="$size" --output-format=json)
kernel() { fio "${job[@]}" -ioengine=io_uring 2>/dev/null; }
ours() { "$cairn" fio "${job[@]}" -ioengine=libaio 2>/dev/null; }
iops() { python3 -c 'import json,sys; t=sys.stdin.read(); print(json.loads(t[t.index("{"):])["jobs"][0]["write"]["iops"])'; }

# The first run lays the file out; it is thrown away.
fio "${job[@]}" -ioengine=io_uring -runtime=1 >/dev/null 2>&1 || skip "fio cannot use io_uring here"
ratios=()
for pair in $(seq "$pairs"); do
  if [ $((pair % 2)) = 1 ]; then a=$(kernel | iops) b=$(ours | iops); else b=$(ours | iops) a=$(kernel | iops); fi
  ratio=$(python3 -c "print($b / $a)")
  ratios+=("$ratio")
  printf 'pair %d: kernel ext4 on loop on tmpfs, io_uring %9.0f IOPS   cairn %9.0f IOPS   ratio %6.2f\n' \
    "$pair" "$a" "$b" "$ratio"
done
python3 - "${ratios[@]}" <<'P'
import statistics, sys
r = sorted(map(float, sys.argv[1:]))
m = statistics.median(r)
print(f"median ratio {m:.2f}, from {r[0]:.2f} to {r[-1]:.2f}; bar 10: {'met' if m >= 10 else 'NOT met'}")
P
