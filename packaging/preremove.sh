#!/bin/sh
# Debian says "upgrade", RPM the number of versions that stay: then nothing stops.
set -e
case "$1" in
  upgrade | 1) exit 0 ;;
esac
if [ -d /run/systemd/system ]; then
  systemctl disable --now megatron-ops.service || true
fi
