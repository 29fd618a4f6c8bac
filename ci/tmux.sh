#!/usr/bin/env bash
# Drives the dashboard in tmux as a person would: flips policies, resizes, suspends and resumes,
# quits, ends it from outside, closes the window; and looks each time whether the terminal came back
# as it was. Usage: ci/tmux.sh PATH-OF-CAIRN
set -euo pipefail

bin=$(realpath -e "${1:?usage: ci/tmux.sh PATH-OF-CAIRN}")
if ! command -v tmux >/dev/null 2>&1; then
  echo "skipped: tmux is not installed"
  exit 0
fi

dir=$(mktemp -d)
name=cairn-ci-$$
tm() { tmux -L "$name" -f /dev/null "$@"; }
trap 'tm kill-server 2>/dev/null || true; rm -rf "$dir"' EXIT

screen() { tm capture-pane -p -t dash; }
state() { tm display-message -p -t dash '#{alternate_on} #{cursor_flag}'; }
type_keys() { tm send-keys -t dash "$@"; }
resize() { tm resize-window -t dash -x "$1" -y "$2"; }

# Waits until a condition holds; at most 30 s.
until_true() { # words command...
  local words=$1 end=$((SECONDS + 30))
  shift
  until "$@"; do
    if ((SECONDS >= end)); then
      echo "FAILED: $words; the screen:"
      screen || true
      echo "alternate screen and cursor: $(state || true)"
      exit 1
    fi
    sleep 0.05
  done
}
shows() { screen | grep -qF -- "$1"; }
shows_not() { ! shows "$1"; }
state_is() { [ "$(state)" = "$1" ]; }
sees() { until_true "no \"$1\"" shows "$1"; }
dash_on() { until_true "the dashboard does not have the terminal" state_is "1 0"; }
dash_off() { until_true "the terminal was not given back" state_is "0 1"; }

# Process that the shell of the pane runs.
child() {
  local shell
  shell=$(tm display-message -p -t dash '#{pane_pid}')
  awk -v shell="$shell" '{
    pid = $1; sub(/^.*\) /, ""); if ($2 == shell) { print pid; exit }
  }' /proc/[0-9]*/stat 2>/dev/null || true
}
has_child() { [ -n "$(child)" ]; }
gone() { [ ! -d "/proc/$1" ] || grep -q '^State:[[:space:]]*Z' "/proc/$1/status" 2>/dev/null; }

start() {
  type_keys "clear; stty -g >'$dir/before'; \"\$CAIRN\"" Enter
  dash_on
  sees '[RUN]'
  sees 'IOPS'
  until_true "no process" has_child
}
same_modes() { [ -s "$dir/after" ] && cmp -s "$dir/before" "$dir/after"; }
ended() { # code
  dash_off
  sees 'ready>'
  type_keys "echo code=\$?; stty -g >'$dir/after'" Enter
  sees "code=$1"
  until_true "the modes of the terminal differ from before" same_modes
  rm -f "$dir/after"
}
ok() { echo "ok: $*"; }

tm new-session -d -s dash -x 80 -y 24 \
  "env PS1='ready> ' CAIRN='$bin' XDG_CONFIG_HOME='$dir' bash --norc --noprofile -i"
sees 'ready>'

start
type_keys p
sees '>A shared<'
type_keys c
sees '>A always-rmw<'
type_keys p
sees '>B per-cpu<'
sees '3 marks'
ok "both policies flip"

resize 160 48
sees 'Self check'
resize 40 12
until_true "the wide view stays" shows_not 'Self check'
sees 'IOPS'
resize 20 5
sees 'need 30x8'
resize 80 24
sees 'Throughput'
ok "every size class"

type_keys ' '
sees 'FROZEN'
type_keys ' '
sees 'view live'
type_keys S
sees '[STOP]'
type_keys S
sees '[RUN]'
ok "freeze and go on, stop and start"

type_keys a
sees 'A B B A'
type_keys a
type_keys 7 /
sees 'find:'
type_keys -l 'per-cpu'
sees 'with "per-cpu"'
type_keys Escape
type_keys 1 o C-u
type_keys -l 'ram(1g'
type_keys Enter
sees 'never closed'
type_keys Escape
sees '[RUN]'
ok "auto A/B, search, and a stack that is refused"

type_keys C-z
dash_off
sees 'Stopped'
type_keys 'fg' Enter
dash_on
sees 'Throughput'
# The workers rest meanwhile, or the stop would count as latency.
type_keys 7
sees 'workload stopped'
sees 'workload started'
type_keys 1
sees '[RUN]'
ok "suspend by Ctrl-Z, resume by fg"

kill -TSTP "$(child)"
dash_off
type_keys 'clear; fg' Enter
dash_on
sees 'Throughput'
ok "suspend from outside, resume by fg"

type_keys q
dash_off
sees 'policy flag-set always-rmw'
ended 0
ok "quit leaves the summary and the terminal as it was"

start
kill -TERM "$(child)"
ended 143
ok "SIGTERM ends with 143 and gives the terminal back"

type_keys "clear; stty -g >'$dir/before'; \"\$CAIRN\" nbd serve 'stats/ram(16m)' --unix '$dir/socket' --dash" Enter
dash_on
sees 'default'
"$bin" fio --name=x --rw=randrw --bs=4k --size=16m --time_based --runtime=60 --on device \
  --stack "nbd(nbd+unix:///?socket=$dir/socket)" >"$dir/client" 2>&1 &
client=$!
sees 'client 1'
sees 'IOPS'
kill "$client"
wait "$client" 2>/dev/null || true
until_true "the client stays" shows_not 'client 1'
type_keys q
ended 0
ok "a server behind the dashboard shows its client and its layers"

start
pid=$(child)
# The session lives on in another window.
tm new-window -d -t dash "sleep 600"
tm kill-pane -t dash
until_true "the process outlives its window" gone "$pid"
ok "closing the window ends the process"
