#!/bin/bash
# Prints, for each log file below a folder, the line number and the text of its
# first error that is not NCCL's, so that the rank that failed first is seen.
# usage: failing-ranks.sh FOLDER
# exit: 0 something was found, 1 nothing was found, 2 bad usage
set -euo pipefail
if [ $# -ne 1 ] || [ ! -d "$1" ]; then
  echo "usage: failing-ranks.sh FOLDER" >&2
  exit 2
fi
found=1
while IFS= read -r -d '' file; do
  line=$(grep -n -m1 -E 'Traceback|ERROR|FAILED|fatal' -- "$file" | grep -v NCCL || true)
  [ -n "$line" ] || continue
  found=0
  printf '%s:%s\n' "$file" "$line"
done < <(find "$1" -type f -print0 | sort -z)
exit $found
