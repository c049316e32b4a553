package cluster

import (
	"context"
	"os"
	"strings"

	"github.com/megatron-ops/megatron-ops/slurm"
)

// onANode carries a launch out from a node of its job, as a step without GPUs
// that shares with all others. The script, which comes on standard input, is a
// login node's: it must not take this step for its own.
const onANode = `base=$1; shift
cat >"$base.sh" || exit
for name in $(compgen -e SLURM_); do
  case $name in SLURM_CONF | SLURM_CLUSTERS) ;; *) unset "$name" ;; esac
done
bash "$base.sh" "$@" </dev/null >"$base.out" 2>"$base.err" || { code=$?; tail -n 5 "$base.err" >&2; exit $code; }`

// besideUs starts a command in a session of its own, with this standard input,
// and says its process id and the file of its words.
const besideUs = `said=$(mktemp) || exit
exec 3<&0
setsid sh -c 'said=$1; shift; "$@" <&3 >"$said" 2>&1; exit $?' sh "$said" "$@" >/dev/null 2>&1 &
echo "$! $said"`

// begin starts the script as another user. sudo lends us Slurm's commands only,
// and of those srun starts what it is told on the job's own nodes, where that
// user may start anything anyway.
func (s *sudo) begin(ctx context.Context, op string, l slurm.Launch, base string, env []string) (begun, error) {
	srun := []string{
		"srun", "--jobid=" + string(l.Job), "--overlap", "--nodes=1", "--ntasks=1", "--gres=gpu:0", "--job-name=launch", "--chdir=" + l.Dir,
		"bash", "-c", onANode, "bash", base,
	}
	c, err := s.wrapped(command{argv: append(srun, l.Args...), env: env, stdin: l.Script})
	if err != nil {
		return begun{}, err
	}
	c.argv = append([]string{"sh", "-c", besideUs, "sh"}, c.argv...)
	r, err := s.inner.run(ctx, c)
	if err != nil {
		return begun{}, named(op, err)
	}
	pid, said, ok := strings.Cut(strings.TrimSpace(r.stdout), " ")
	if r.code != 0 || !ok {
		return begun{}, refusal(op, r)
	}
	return begun{s.inner, pid, said, func() { _ = os.Remove(said) }}, nil
}
