# Waits until the test process is gone, then ends the Slurm in $1: each process
# whose environment names the directory, and what descends from it.
read -r _
below() {
	cat /proc/"$1"/task/*/children 2>/dev/null | tr ' ' '\n' | while read -r child; do
		below "$child"
		kill -KILL "$child" 2>/dev/null
	done
}
for dir in /proc/[0-9]*; do
	pid=${dir#/proc/}
	[ "$pid" = $$ ] && continue
	if tr '\0' '\n' <"$dir/environ" 2>/dev/null | grep -qxF "SLURMTEST_DIR=$1"; then
		below "$pid"
		kill -KILL "$pid" 2>/dev/null
	fi
done
sleep 1
rm -rf "$1"
