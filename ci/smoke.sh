#!/usr/bin/env bash
# Runs the commands of the README as a user would, and feeds them bad input: usage ci/smoke.sh CAIRN
set -euo pipefail
cairn=$(realpath "$1")
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
  echo "FAILED: $*"
  echo "--- stdout"; head -n 30 "$work/out"
  echo "--- stderr"; head -n 30 "$work/err"
  exit 1
}
# run EXIT COMMAND...: runs it and checks its exit code.
run() {
  local want=$1 code=0
  shift
  "$@" >"$work/out" 2>"$work/err" </dev/null || code=$?
  [ "$code" = "$want" ] || fail "exit $code instead of $want: $*"
}
out() { grep -qE -- "$1" "$work/out" || fail "stdout lacks: $1"; }
err() { grep -qE -- "$1" "$work/err" || fail "stderr lacks: $1"; }
quiet() { [ ! -s "$work/out" ] || fail "stdout should be empty"; }

echo "the default scenario without a terminal"
run 0 "$cairn"
out '^throughput +[0-9.]+ [kM]?IOPS'
out 'p50 .*p99 .*max'
out 'flag-set +(always-rmw|check-first)'
out 'es-counters +(shared|per-cpu)'
out 'exact .*approximate .*bound'
out 'avoided'

echo "the fio command of the kernel patch"
fio=(-name=randwrite -numjobs=8 -filename=/mnt/test1 -rw=randwrite -ioengine=libaio -direct=1 -iodepth=64 -sync=0
  -norandommap -group_reporting -runtime=1 -time_based -bs=4k -size=256M)
run 0 "$cairn" fio "${fio[@]}"
out '^randwrite: \(groupid=0, jobs=8\): err= 0:'
out 'write: IOPS='
err 'file layer: ext4'
run 0 "$cairn" fio "${fio[@]}" --output-format=json
python3 -c '
import json, sys
job = json.load(open(sys.argv[1]))["jobs"][0]
assert job["write"]["total_ios"] > 0 and job["error"] == 0, job["write"]["total_ios"]
' "$work/out" || fail "the JSON is not what fio consumers expect"
sed 's/^runtime=.*/runtime=1/' fixtures/jobs/randwrite.fio >"$work/randwrite.fio"
run 0 "$cairn" fio "$work/randwrite.fio"
out 'write: IOPS='

echo "kernel traces"
traces=(fixtures/traces/*.trace.gz)
run 0 "$cairn" replay "${traces[@]}"
out '^lookups [0-9]+ agreed [0-9]+  ranges'
for trace in "${traces[@]}"; do
  info=${trace%.trace.gz}.es_shrinker_info
  run 0 "$cairn" replay "$trace" --expect-info "$info"
  out '^info agreed'
done

echo "creat-clo"
run 0 "$cairn" aim7 creat-clo --tasks 8
out 'jobs/min'
out 'files of the ext4 layer'
run 0 "$cairn" aim7 creat-clo --tasks 8 --on pattern
out 'access pattern'

echo "an image"
run 0 "$cairn" image mkfs "$work/image" --size 32m
run 0 "$cairn" image put "$work/image" README.md /
run 0 "$cairn" image ls "$work/image" /
out 'README.md'
run 0 "$cairn" image get "$work/image" /README.md "$work/back"
cmp README.md "$work/back" || fail "a file came back changed"
run 0 "$cairn" image check "$work/image"
out 'sound'

echo "a comparison, its report, and the report once more"
code=0
"$cairn" ab flag-set --pairs 6 --run-time 100ms --warmup 50ms --max-others 100 --max-steal 100 --out "$work/ab" \
  >"$work/out" 2>"$work/err" || code=$?
# Exit 1 stands for a machine that cannot tell, which is no fault of the program.
[ "$code" -le 1 ] || fail "exit $code of cairn ab"
out 'this machine resolves'
out 'must move, moved'
cp "$work/ab/report.html" "$work/before.html"
run 0 "$cairn" report "$work/ab"
cmp -s "$work/before.html" "$work/ab/report.html" || fail "the report came out different"
run 0 "$cairn" compare "$work/ab" "$work/ab"
bash ci/report-browser.sh "$work/ab" "$work/pictures"

echo "lists"
for what in scenarios policies layers engines; do
  run 0 "$cairn" list "$what"
done
run 0 "$cairn" stack explain 'stats/ram(64m)'
out 'ram'

echo "samples as lines, metrics, configuration, completions, the manual page"
run 0 "$cairn" dash --duration 600ms --format jsonl
out '"schema_version":1'
run 0 "$cairn" dash --duration 600ms --format csv
out '^t,arms,workload'
run 0 "$cairn" dash --plain --duration 1s
out 'IOPS, p99'
run 0 "$cairn" dash --duration 600ms --metrics-file "$work/cairn.prom"
grep -q '^cairn_operations_total' "$work/cairn.prom" || fail "no metrics"
run 0 "$cairn" config print
out '^scenario = '
run 0 "$cairn" generate completions bash
out 'metrics-file'
run 0 "$cairn" generate man
out 'CAIRN DASH'

echo "bad input"
run 2 "$cairn" fio --name=a --rw=randwrite --iodeth=4 --size=1m
quiet
err "did you mean"
run 2 "$cairn" fio --name=a --rw=randwrite --bs=4q --size=1m
run 2 "$cairn" fio --name=a --rw=randwrite --size=0
run 2 "$cairn" fio "$work/none.fio"
err 'none.fio'
printf 'rw=read\n[a]\nsize=1m\n' >"$work/early.fio"
run 2 "$cairn" fio "$work/early.fio"
err 'early.fio:1'
echo 'no trace at all' >"$work/notrace"
run 2 "$cairn" replay "$work/notrace"
head -c 2000 fixtures/traces/creat_clo.trace.gz >"$work/cut.trace.gz"
run 2 "$cairn" replay "$work/cut.trace.gz"
err 'cut.trace.gz'
run 2 "$cairn" fio --stack='ram(1g' --name=a --rw=read --size=1m
run 2 "$cairn" fio --stack='rom(1g)' --name=a --rw=read --size=1m
run 2 "$cairn" stack explain 'ram(100t)'
run 2 "$cairn" dash no-such-scenario
run 2 "$cairn" dash --listen 0.0.0.0:9187
echo 'colr = "16"' >"$work/config.toml"
run 2 "$cairn" dash --config "$work/config.toml"
err 'config.toml:1'
run 2 "$cairn" aim7 creat-clo --tasks 0
run 2 "$cairn" nonsense

echo "ok"
