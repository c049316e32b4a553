#!/bin/bash
# Waits for a result file of a job, then cancels what is left of the job.
# usage: wait-for-artifact.sh JOB_ID FILE [SECONDS_BETWEEN_LOOKS]
# exit: 0 the file is there, 1 the job ended without it, 2 bad usage
set -euo pipefail
if [ $# -lt 2 ]; then
  echo "usage: wait-for-artifact.sh JOB_ID FILE [SECONDS]" >&2
  exit 2
fi
job=$1 file=$2 every=${3:-30}
until [ -s "$file" ]; do
  if [ -z "$(squeue -h -j "$job" -o %T 2>/dev/null)" ]; then
    [ -s "$file" ] && exit 0 # it came with the job's last breath
    echo "job $job ended without $file" >&2
    exit 1
  fi
  sleep "$every"
done
scancel "$job"
echo "$file is there; job $job cancelled"
