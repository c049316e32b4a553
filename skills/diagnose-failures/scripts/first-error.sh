#!/bin/bash
# Lists the first line of trouble of each log file of a job, leaving out what is
# only a consequence elsewhere (NCCL, torchelastic's summary, SIGTERM).
# usage: first-error.sh FILE_OR_FOLDER...
# exit: 0 something was found, 1 nothing was found, 2 bad usage
set -euo pipefail
if [ $# -eq 0 ]; then
  echo "usage: first-error.sh FILE_OR_FOLDER..." >&2
  exit 2
fi
trouble='Traceback|Error|error:|CANCELLED|oom-kill|Killed|Xid|Segmentation fault'
consequence='NCCL|ProcessGroupNCCL|DistBackendError|ChildFailedError|SIGTERM|closing signal|srun: error|RemoteError'
found=1
while IFS= read -r -d '' file; do
  line=$(grep -n -E "$trouble" -- "$file" | grep -v -E "$consequence" | head -n1 || true)
  [ -n "$line" ] || continue
  found=0
  printf '%s:%s\n' "$file" "$line"
done < <(find "$@" -type f -print0 | sort -z)
exit $found
