package cluster

import (
	"context"
	"os"
	"strings"

	"github.com/megatron-ops/megatron-ops/slurm"
)

// launchOnNode is a script that runs a launch from a node of its job, in a step without
// GPUs that overlaps with all others. It saves the launch's script from standard input.
// The launch's script is written for a login node, so this step's own SLURM_ variables
// must not reach it.
const launchOnNode = `base=$1; shift
cat >"$base.sh" || exit
for name in $(compgen -e SLURM_); do
  case $name in SLURM_CONF | SLURM_CLUSTERS) ;; *) unset "$name" ;; esac
done
bash "$base.sh" "$@" </dev/null >"$base.out" 2>"$base.err" || { code=$?; tail -n 5 "$base.err" >&2; exit $code; }`

// startDetached starts a command in a session of its own with the same standard input,
// and prints its process id and the file that receives its output.
const startDetached = `said=$(mktemp) || exit
exec 3<&0
setsid sh -c 'said=$1; shift; "$@" <&3 >"$said" 2>&1; exit $?' sh "$said" "$@" >/dev/null 2>&1 &
echo "$! $said"`

// startLaunch starts the script as another user. sudo allows only Slurm's commands.
// Among them srun starts any command on the job's own nodes, where that user may start
// anything anyway.
func (s *sudoRunner) startLaunch(ctx context.Context, op string, l slurm.Launch, base string, env []string) (launchProcess, error) {
	srun := []string{
		"srun", "--jobid=" + string(l.Job), "--overlap", "--nodes=1", "--ntasks=1", "--gres=gpu:0", "--job-name=launch", "--chdir=" + l.Dir,
		"bash", "-c", launchOnNode, "bash", base,
	}
	c, err := s.wrapped(command{argv: append(srun, l.Args...), env: env, stdin: l.Script})
	if err != nil {
		return launchProcess{}, err
	}
	c.argv = append([]string{"sh", "-c", startDetached, "sh"}, c.argv...)
	r, err := s.inner.run(ctx, c)
	if err != nil {
		return launchProcess{}, withOp(op, err)
	}
	pid, said, ok := strings.Cut(strings.TrimSpace(r.stdout), " ")
	if r.code != 0 || !ok {
		return launchProcess{}, refusal(op, r)
	}
	return launchProcess{s.inner, pid, said, func() { _ = os.Remove(said) }}, nil
}
