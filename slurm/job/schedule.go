package job

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/slurm"
)

// Signalled reports whether the ranks can receive a signal to save and end.
func (s Spec) Signalled() bool { return s.Signal != "" || s.KillSwitch != "" }

// Pretrains reports whether the script is called as Megatron's own trainings are.
func (s Spec) Pretrains() bool { return strings.HasPrefix(path.Base(s.Script), "pretrain_") }

// ExitSignal returns the signal on which Megatron saves and ends, without SIG. The
// default is USR1, because torch's launcher ends its ranks itself on TERM, INT, HUP and
// QUIT.
func (s Spec) ExitSignal() string {
	if s.Signal == "" {
		return "USR1"
	}
	ahead, _ := slurm.ParseSignal(s.Signal)
	return slurm.SignalName(ahead.Name)
}

// toBatch reports whether Slurm sends the signal to the batch shell alone.
func (s Spec) toBatch() bool {
	ahead, _ := slurm.ParseSignal(s.Signal)
	return ahead.BatchOnly
}

// exitFlags returns the flags that make Megatron save and end on the signal, as far as
// the arguments do not have them.
func (r *rendering) exitFlags() []string {
	if !r.Signalled() || r.Minimal || !r.Pretrains() {
		return nil
	}
	var flags []string
	if !slices.Contains(r.Args, "--exit-signal-handler") {
		flags = append(flags, "--exit-signal-handler")
	}
	given := slices.ContainsFunc(r.Args, func(a string) bool { return a == "--exit-signal" || strings.HasPrefix(a, "--exit-signal=") })
	if sig := r.ExitSignal(); sig != "TERM" && !given { // TERM is the default, and 0.15 has no such flag
		flags = append(flags, "--exit-signal", "SIG"+sig)
	}
	return flags
}

// beforeStart returns the commands that end the job before its launch if the kill
// switch exists, such as a further element of an array or a restart.
func (r *rendering) beforeStart() string {
	if r.KillSwitch == "" {
		return ""
	}
	file := quote(r.KillSwitch)
	return `# Kill switch: while this file is there every rank saves and ends, and nothing starts. Remove it
# before the next start. A job that hangs does not hear it: scancel ends that.
KILL_SWITCH=` + file + `
[[ ! -e $KILL_SWITCH ]] || { echo "kill switch $KILL_SWITCH is there: not starting; remove it first" >&2; exit 0; }`
}

// afterStart returns the end of the launch command. If the batch shell has to pass on
// a signal or to poll the kill switch, the step runs in the background and afterStart
// also returns the commands that wait for it.
func (r *rendering) afterStart() string {
	if !r.toBatch() && r.KillSwitch == "" {
		return r.joined()
	}
	sig := r.ExitSignal()
	var b strings.Builder
	b.WriteString(r.joined() + " &\nSTEP=$!\n")
	if r.toBatch() {
		fmt.Fprintf(&b, "trap 'kill -%s \"$STEP\"' %s  # srun passes it on to the ranks\n", sig, sig)
	}
	if r.KillSwitch != "" {
		fmt.Fprintf(&b, `TOLD=0
while sleep 10; do
  [[ -e $KILL_SWITCH ]] || continue
  ((TOLD)) || echo "kill switch $KILL_SWITCH: the ranks save and end" >&2
  # Each minute, ten times: ranks that are still starting do not hear it.
  ((TOLD %% 6)) || kill -%s "$STEP" || break
  ((++TOLD < 60)) || break
done &
WATCH=$!
`, sig)
	}
	b.WriteString(`CODE=0
until wait "$STEP"; do  # a signal ends wait, not the step
  CODE=$?
  kill -0 "$STEP" 2>/dev/null || break
  CODE=0
done
`)
	if r.KillSwitch != "" {
		b.WriteString("kill \"$WATCH\" 2>/dev/null || true\n")
	}
	b.WriteString(`exit "$CODE"`)
	return b.String()
}

// joined returns the redirection for the preset joined-log: both streams of every rank
// also go to one file. The redirection does not change the exit status.
func (r *rendering) joined() string {
	if !slices.Contains(r.Preset, joinedLog) {
		return ""
	}
	return ` \
  > >(tee -a ` + quote(r.LogDir+"/") + `"$SLURM_JOB_NAME-$SLURM_JOB_ID.log") 2>&1`
}

// StopFile returns the path of the file whose existence ends the job's series or chain,
// relative to the worktree if LogDir is. s has its defaults.
func (s Spec) StopFile() string { return path.Join(s.LogDir, s.Name+".stop") }

// series returns the commands that queue the next run of a periodic job. They run
// before the launch, so that a failure of this run does not end the series.
func (r *rendering) series() string {
	if r.Every == "" || r.into != "" {
		return ""
	}
	stop := r.StopFile()
	return fmt.Sprintf(`# Runs again %s; the next run is queued first, so that a failure does not end the series.
# List: squeue --me --name=%s   Stop: touch %s (or scancel the queued one)
if [[ ! -e %s && ${SLURM_RESTART_COUNT:-0} == 0 ]]; then
  scontrol write batch_script "$SLURM_JOB_ID" - | sbatch --begin=%s >&2 ||
    echo "the next run could not be queued: the series ends here" >&2
fi
find %s -maxdepth 1 -name %s -mtime +7 -delete  # old logs of the series`,
		r.Every, r.Name, quote(stop), quote(stop), beginAfter(r.Every), quote(r.LogDir), quote(r.Name+"-*"))
}

// chained returns the commands that queue the next job of a chain. The next job starts
// when this job has ended, whether it succeeds, fails or reaches its time limit.
func (r *rendering) chained() string {
	if r.Chain == nil || *r.Chain < 2 || r.into != "" {
		return ""
	}
	stop := quote(r.StopFile())
	return fmt.Sprintf(`# A chain of %d jobs: the next one waits for this one's end, however it comes. touch %s ends the chain.
[[ ! -e %s ]] || { echo "%s.stop is there: the chain ends" >&2; exit 0; }
[[ ${LINK:-} =~ ^[1-9][0-9]{0,3}$ ]] || LINK=1
echo "link $LINK of %d"
if [[ $LINK -lt %d && ${SLURM_RESTART_COUNT:-0} == 0 ]]; then
  scontrol write batch_script "$SLURM_JOB_ID" - | LINK=$((LINK + 1)) sbatch --dependency=afterany:"$SLURM_JOB_ID" >&2 ||
    echo "the next job could not be queued: the chain ends here" >&2
fi`, *r.Chain, stop, stop, r.Name, *r.Chain, *r.Chain)
}

// beginAfter returns the value of --begin for the period every, such as now+12hours.
func beginAfter(every string) string {
	switch every {
	case "hourly":
		return "now+1hour"
	case "daily":
		return "now+1day"
	case "weekly":
		return "now+1week"
	}
	n := strings.TrimRight(every, "abcdefghijklmnopqrstuvwxyz")
	unit := map[byte]string{'m': "minutes", 'h': "hours", 'd': "days"}[every[len(n)]]
	return "now+" + n + unit
}

// sourced returns the body of an array job whose elements source the script Train.
// Each element reads the script again, so that a person can edit or replace it before
// the next element starts.
func (r *rendering) sourced() string {
	return `# The train: hold it with scontrol hold, edit the file, release it; no place in the queue is lost.
# shellcheck source=/dev/null
source ` + quote(sourcePath(r.Train))
}

// sourcePath adds ./ to a relative path, because source searches the PATH for a name
// without a slash.
func sourcePath(p string) string {
	if path.IsAbs(p) {
		return p
	}
	return "./" + strings.TrimPrefix(p, "./")
}

// secretNames are the variables that the secrets file may set.
var secretNames = strings.Fields("HF_TOKEN HUGGING_FACE_HUB_TOKEN WANDB_API_KEY COMET_API_KEY MLFLOW_TRACKING_TOKEN NGC_API_KEY AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN")

// secrets returns the commands that export tokens from a file of the user, so that
// tokens appear neither in the script nor on a command line.
func (r *rendering) secrets() string {
	file := r.Site.SecretsFile
	if file == "" {
		return ""
	}
	name := quote(file)
	if rest, ok := strings.CutPrefix(file, "~/"); ok {
		name = `"$HOME"/` + quote(rest)
	}
	return `# Secrets: NAME=value lines of a file that only its owner may read.
SECRETS=` + name + `
if [[ -f $SECRETS ]]; then
  [[ -O $SECRETS && $(stat -c %a "$SECRETS") == 600 ]] || { echo "$SECRETS must be yours, with mode 600" >&2; exit 3; }
  while IFS= read -r SECRET || [[ -n $SECRET ]]; do
    case ${SECRET%%=*} in ` + strings.Join(secretNames, "|") + `) export "${SECRET?}" ;; esac
  done <"$SECRETS"
  unset SECRET
fi`
}
