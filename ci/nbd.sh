#!/usr/bin/env bash
# Serves stacks to the programs that people use, and checks what each of them sees:
# usage ci/nbd.sh CAIRN [CAIRN-WITH-TLS]. What is not installed is left out and said so.
set -euo pipefail
cairn=$(realpath "$1")
with_tls=$(realpath "${2:-$1}")
[ -x "$with_tls" ] || with_tls=$cairn
work=$(mktemp -d)
servers=()

clean() {
  mountpoint -q "$work/fs" && umount "$work/fs"
  [ -n "${loop:-}" ] && losetup -d "$loop" 2>/dev/null
  mountpoint -q "$work/fuse" && { fusermount3 -u "$work/fuse" || umount -l "$work/fuse"; }
  for pid in "${servers[@]}"; do kill "$pid" 2>/dev/null || true; done
  rm -rf "$work"
}
trap clean EXIT

fail() {
  echo "FAILED: $*"
  [ -f "$work/out" ] && tail -n 30 "$work/out"
  exit 1
}
# run COMMAND...: must succeed within a minute.
run() { timeout 60 "$@" >"$work/out" 2>&1 </dev/null || fail "exit $?: $*"; }
out() { grep -qE -- "$1" "$work/out" || fail "lacks: $1"; }
have() {
  for program; do
    command -v "$program" >/dev/null 2>&1 || { echo "skipped: $program is not installed"; return 1; }
  done
}
# serve NAME SPEC OPTION...: a server on $work/NAME.sock; sets uri.
serve() {
  local name=$1
  shift
  "$cairn" nbd serve "$@" --unix "$work/$name.sock" 2>"$work/$name.log" &
  servers+=($!)
  for _ in $(seq 500); do [ -S "$work/$name.sock" ] && break; sleep 0.02; done
  [ -S "$work/$name.sock" ] || { cat "$work/$name.log"; fail "no socket $name"; }
  uri="nbd+unix:///?socket=$work/$name.sock"
}
# release DIRECTORY: unmounts it, once whoever else looks into it has gone.
release() {
  for _ in $(seq 100); do umount "$1" 2>"$work/out" && return; sleep 0.1; done
  fail "cannot unmount $1"
}
# stop NAME: SIGTERM, exit 143, socket gone.
stop() {
  local pid=${servers[-1]} code=0
  kill -TERM "$pid"
  wait "$pid" || code=$?
  unset 'servers[-1]'
  [ "$code" = 143 ] || fail "exit $code instead of 143 after SIGTERM"
  [ ! -e "$work/$1.sock" ] || fail "the socket is still there"
}
section() { echo "$1"; }

if have nbdinfo; then
  section "nbdinfo"
  serve info 'stats/ram(1000003)' --export 'small=ram(64k,block=512)' --description 'a disk'
  run nbdinfo --json "$uri"
  out '"export-size": 1000003'
  out '"can_multi_conn": true'
  out '"block_size_maximum": 67108864'
  out '"description": "a disk"'
  run nbdinfo --list "$uri"
  out 'export="small"'
  run nbdinfo --size "$uri"
  out '^1000003$'
  for can in multi-conn flush fua trim zero df "fast-zero"; do run nbdinfo --can "$can" "$uri"; done
  run nbdinfo --map=base:allocation "$uri"
  out '0 +1000003 +3 +hole,zero'
  run nbdinfo "nbd+unix:///small?socket=$work/info.sock"
  out 'block_size_minimum: 512'
  stop info
fi

if have nbdcopy; then
  section "nbdcopy"
  serve copy 'ram(128m)' --export 'b=ram(128m)'
  b="nbd+unix:///b?socket=$work/copy.sock"
  # A file with holes, and data in odd places.
  truncate -s 128M "$work/image"
  for at in 0 1 17 63 127; do
    head -c 700001 /dev/urandom | dd of="$work/image" bs=64K seek=$((at * 16)) conv=notrunc status=none
  done
  truncate -s 128M "$work/image"
  run nbdcopy --connections=4 --requests=64 --flush "$work/image" "$uri"
  run nbdcopy --connections=4 --requests=64 "$uri" "$work/back"
  cmp "$work/image" "$work/back" || fail "nbdcopy brought something else back"
  run nbdcopy --destination-is-zero "$uri" "$b"
  run nbdcopy --synchronous "$b" "$work/back"
  cmp "$work/image" "$work/back" || fail "nbdcopy between exports"
  run nbdinfo --map --totals "$b"
  out 'hole,zero'
  run nbdcopy --allocated "$uri" "$b"
  rm -f "$work/back"
  stop copy
fi

if have qemu-img qemu-io; then
  section "qemu"
  serve qemu 'stats/ram(64m)' --export 'q=ram(64m)'
  run qemu-io -f raw "$uri" -c 'write -P 0xab 0 1M' -c 'read -P 0xab 0 1M' -c 'write -z -u 64k 64k' \
    -c 'read -P 0 64k 64k' -c 'write -z -u -n 128k 64k' -c 'discard 256k 64k' -c 'read -P 0 256k 64k' \
    -c 'write -f -P 0x11 1000001 4099' -c 'read -P 0x11 1000001 4099' -c 'aio_write -P 7 2M 64k' \
    -c 'aio_flush' -c 'read -P 7 2M 64k' -c flush
  ! grep -qE 'failed|verification' "$work/out" || fail "qemu-io saw an error"
  run qemu-img map -f raw --output=json "$uri"
  out '"zero": true'
  q="nbd+unix:///q?socket=$work/qemu.sock"
  run qemu-img convert -n -f raw -O raw "$uri" "$q"
  run qemu-img compare -f raw -F raw "$uri" "$q"
  run qemu-img convert -f raw -O qcow2 "$uri" "$work/disk.qcow2"
  run qemu-img compare -f raw -F qcow2 "$q" "$work/disk.qcow2"
  run qemu-img bench -c 20000 -d 64 -t none -f raw "$uri"
  run qemu-img bench -c 20000 -d 64 -w -t none -f raw "$uri"
  stop qemu
fi

if PATH=/usr/bin:$PATH python3 -c 'import nbd' 2>/dev/null; then
  section "nbdsh"
  serve sh 'ram(1m)'
  # The system's Python has the module, whatever other Python is in front of it.
  PATH=/usr/bin:$PATH run python3 -m nbd -u "$uri" -c '
h.set_strict_mode(0)
for call in (lambda: h.pread(512, 1 << 20), lambda: h.pwrite(b"x" * 512, (1 << 20) - 1),
             lambda: h.trim(0, 0), lambda: h.cache(512, 0), lambda: h.zero(512, 1 << 40)):
    try:
        call()
        raise SystemExit("accepted what it should refuse")
    except nbd.Error:
        pass
h.pwrite(b"still here", 5)
assert h.pread(10, 5) == b"still here"
h.shutdown()
'
  stop sh
else
  echo "skipped: Python has no module nbd"
fi

if have fio && fio --enghelp 2>/dev/null | grep -qw nbd; then
  section "fio"
  serve fio 'ram(64m)'
  run fio --name=verify --ioengine=nbd "--uri=$uri" --rw=randrw --bs=512-64k --size=32m --iodepth=32 \
    --verify=crc32c --verify_state_save=0 --verify_fatal=1 --group_reporting --randseed=1
  out 'err= 0'
  stop fio
  serve fio 'delay(read=100us,write=100us)/ram(64m)'
  run fio --name=slow --ioengine=nbd "--uri=$uri" --rw=randrw --bs=4k --size=8m --iodepth=64 --verify=crc32c --verify_state_save=0 \
    --verify_fatal=1
  out 'err= 0'
  stop fio
else
  echo "skipped: fio has no nbd engine here"
fi

if have nbd-trdump nbd-trplay qemu-io nbdcopy; then
  section "a log of requests"
  serve log 'ram(1m)' --record "$work/requests.log" --dash
  run qemu-io -f raw "$uri" -c 'write -P 1 0 256k' -c 'write -P 2 4k 4k' -c 'read 0 64k' -c 'write -P 3 900k 512' -c flush
  run nbdcopy "$uri" "$work/now"
  # A line a second, later on a busy machine.
  for _ in $(seq 300); do grep -q 'client' "$work/log.log" && break; sleep 0.1; done
  stop log
  nbd-trdump <"$work/requests.log" >"$work/out" 2>&1 || fail "nbd-trdump"
  out 'WRITE'
  truncate -s 1M "$work/replayed"
  run nbd-trplay -i "$work/replayed" -l "$work/requests.log"
  cmp "$work/now" "$work/replayed" || fail "the replayed log gives another image"
  grep -q 'client' "$work/log.log" || fail "--dash shows no clients"
  rm -f "$work/now" "$work/replayed"
fi

if have nbdkit && nbdkit nbd --version >/dev/null 2>&1; then
  section "nbdkit as a proxy"
  serve far 'ram(16m)'
  run timeout 30 nbdkit -U - --filter=checkwrite nbd "uri=$uri" --run 'nbdinfo --size "$uri"'
  out '16777216'
  stop far
else
  echo "skipped: nbdkit has no nbd plugin here"
fi

if have nbdfuse mkfs.ext4 e2fsck losetup; then
  if [ "$(id -u)" != 0 ] || [ ! -e /dev/fuse ] || [ ! -e /dev/loop-control ]; then
    echo "skipped: a file system needs root, /dev/fuse and loop devices"
  else
    section "a file system"
    serve fs 'stats/ram(96m)'
    mkdir -p "$work/fuse" "$work/fs"
    nbdfuse "$work/fuse/disk" "$uri" >"$work/nbdfuse.log" 2>&1 &
    fuse=$!
    for _ in $(seq 500); do [ -e "$work/fuse/disk" ] && break; sleep 0.02; done
    if [ ! -e "$work/fuse/disk" ]; then
      echo "skipped: nbdfuse cannot mount here: $(tail -n 1 "$work/nbdfuse.log")"
    else
      run mkfs.ext4 -q -F "$work/fuse/disk"
      if loop=$(losetup --show -f "$work/fuse/disk" 2>"$work/out") && mount -t ext4 "$loop" "$work/fs" 2>"$work/out"; then
        head -c 8M /dev/urandom >"$work/data"
        cp "$work/data" "$work/fs/data"
        for i in $(seq 200); do echo "$i" >"$work/fs/file$i"; done
        rm "$work/fs"/file1*
        sync "$work/fs/data"
        release "$work/fs"
        mount -t ext4 -o ro "$loop" "$work/fs"
        cmp "$work/data" "$work/fs/data" || fail "the file system gives something else back"
        [ "$(cat "$work/fs/file77")" = 77 ] || fail "a small file is wrong"
        release "$work/fs"
      else
        echo "skipped: no loop mount here: $(tail -n 1 "$work/out")"
      fi
      [ -n "${loop:-}" ] && losetup -d "$loop"
      loop=
      run e2fsck -fn "$work/fuse/disk"
      fusermount3 -u "$work/fuse" 2>/dev/null || umount "$work/fuse/disk" 2>/dev/null || umount "$work/fuse"
    fi
    wait "$fuse" 2>/dev/null || true
    stop fs
  fi
fi

if have openssl nbdinfo; then
  section "TLS"
  tls=$work/tls
  mkdir -p "$tls" "$tls/own"
  key="-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
  printf 'subjectAltName=DNS:localhost\nbasicConstraints=CA:FALSE\n' >"$tls/ext"
  # shellcheck disable=SC2086
  {
    run openssl req -x509 $key -keyout "$tls/ca-key.pem" -out "$tls/ca-cert.pem" -subj /CN=ca
    run openssl req $key -keyout "$tls/key.pem" -out "$tls/csr" -subj /CN=localhost
    run openssl req $key -keyout "$tls/own/client-key.pem" -out "$tls/own/csr" -subj /CN=client
  }
  sign() {
    run openssl x509 -req -in "$1" -CA "$tls/ca-cert.pem" -CAkey "$tls/ca-key.pem" -CAcreateserial -days 2 \
      -extfile "$tls/ext" -out "$2"
  }
  sign "$tls/csr" "$tls/cert.pem"
  sign "$tls/own/csr" "$tls/own/client-cert.pem"
  cp "$tls/ca-cert.pem" "$tls/own"
  "$with_tls" nbd serve 'null(1m)' --unix "$work/no.sock" --tls-cert "$tls/none" --tls-key "$tls/none" >"$work/out" 2>&1 || true
  if grep -q 'no TLS' "$work/out"; then
    echo "skipped: this build has no TLS"
  else
    plain=$cairn cairn=$with_tls
    papers() { uri="nbds+unix:///?socket=$work/tls.sock&tls-certificates=$1&tls-hostname=localhost"; }
    serve tls 'ram(1m)' --tls-cert "$tls/cert.pem" --tls-key "$tls/key.pem"
    papers "$tls"
    run nbdinfo "$uri"
    out 'with TLS'
    ! nbdinfo "nbd+unix:///?socket=$work/tls.sock" >/dev/null 2>&1 || fail "plain text is served where TLS is required"
    stop tls
    serve tls 'ram(1m)' --tls-cert "$tls/cert.pem" --tls-key "$tls/key.pem" --tls-client-ca "$tls/ca-cert.pem"
    papers "$tls"
    ! nbdinfo "$uri" >/dev/null 2>&1 || fail "a client without a certificate is served"
    papers "$tls/own"
    run nbdinfo "$uri"
    stop tls
    cairn=$plain
  fi
fi

echo "nbd: done"
