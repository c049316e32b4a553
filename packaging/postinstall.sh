#!/bin/sh
# After the files are there: the server's own user, and nothing started unasked.
set -e
if command -v systemd-sysusers >/dev/null; then
  systemd-sysusers /usr/lib/sysusers.d/megatron-ops.conf
elif ! id megatron-ops >/dev/null 2>&1; then
  useradd --system --home-dir /var/lib/megatron-ops --shell /usr/sbin/nologin megatron-ops
fi
chgrp megatron-ops /etc/megatron-ops/environment
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
  # An upgrade goes on with the new version where the server runs.
  systemctl try-restart megatron-ops.service || true
fi
