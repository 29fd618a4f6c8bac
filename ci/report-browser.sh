#!/usr/bin/env bash
# Opens the report of a run directory in a headless Chromium and keeps a picture, light and dark; fails if the
# page shows nothing. Says skipped where there is no browser.
# Usage: bash ci/report-browser.sh RUN-DIR [FOLDER]
set -euo pipefail
run=${1:?the run directory} to=${2:-$1}
browser=
for name in chromium chromium-browser google-chrome chrome; do
  if command -v "$name" >/dev/null 2>&1; then browser=$name; break; fi
done
[ -n "$browser" ] || { echo "skipped: no Chromium is installed, so no report is opened in one"; exit 0; }
page="file://$(realpath "$run/report.html")"
mkdir -p "$to"
for look in light dark; do
  flags=(--headless --no-sandbox --disable-gpu --hide-scrollbars --window-size=1000,2400)
  [ $look = dark ] && flags+=(--force-dark-mode --blink-settings=preferredColorScheme=0)
  "$browser" "${flags[@]}" --screenshot="$to/report-$look.png" "$page" >/dev/null 2>&1
  [ "$(stat -c %s "$to/report-$look.png")" -gt 20000 ] || { echo "$look: the picture is nearly empty"; exit 1; }
done
"$browser" --headless --no-sandbox --disable-gpu --dump-dom "$page" 2>/dev/null | grep -q '<svg' ||
  { echo "the page has no chart"; exit 1; }
echo "report opened in $browser: $to/report-light.png, $to/report-dark.png"
