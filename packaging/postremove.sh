#!/bin/sh
# The state (/var/lib/megatron-ops) and its user stay: they hold which jobs were
# submitted and the audit trail. Whoever wants them gone removes them by hand.
set -e
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
fi
