#!/usr/bin/env bash
# Draws charts with fio-plot (PyPI) from results of `cairn fio`; says skipped where fio-plot is not installed.
# Usage: bash ci/fio-plot.sh CAIRN FOLDER
set -euo pipefail
cairn=$(realpath "${1:?the program}") to=${2:?a folder}
plot=${FIO_PLOT:-$(command -v fio-plot || true)}
[ -n "$plot" ] || { echo "skipped: fio-plot is not installed (pip install fio-plot)"; exit 0; }
mkdir -p "$to/data"
cd "$to"
for depth in 1 2 4; do
  for jobs in 1 2; do
    "$cairn" fio --name=randwrite --rw=randwrite --bs=4k --size=16m --iodepth=$depth --numjobs=$jobs \
      --group_reporting --time_based --runtime=1 --ioengine=libaio --output-format=json \
      --output="data/randwrite-$depth-$jobs.json" 2>/dev/null
  done
done
mkdir -p logs
for depth in 1 2; do
  (cd logs && "$cairn" fio --name=randwrite --rw=randwrite --bs=4k --size=16m --iodepth=$depth --time_based \
    --runtime=1 --log_avg_msec=100 --write_iops_log="randwrite-iodepth-$depth-numjobs-1" \
    --write_lat_log="randwrite-iodepth-$depth-numjobs-1" >/dev/null 2>&1)
done
"$plot" -i data -T cairn -l -r randwrite -d 1 2 4 -n 1 -o bars.png
"$plot" -i data -T cairn -L -t iops -r randwrite -d 1 2 4 -n 1 2 -o 3d.png
"$plot" -i logs -T cairn -g -r randwrite -t iops lat -d 1 2 -n 1 -o 2d.png
for chart in bars 3d 2d; do [ -s "$chart.png" ] || { echo "$chart.png is missing"; exit 1; }; done
echo "fio-plot drew bars, 3d and 2d in $to"
