package cluster

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/hostlist"
)

// Hold keeps a pending job from starting.
func (c *CLI) Hold(ctx context.Context, id slurm.JobID) error {
	return c.control(ctx, "hold", id, "hold", string(id))
}

// Release lets a held job start.
func (c *CLI) Release(ctx context.Context, id slurm.JobID) error {
	return c.control(ctx, "release", id, "release", string(id))
}

// Requeue stops a running job and puts it back into the queue.
func (c *CLI) Requeue(ctx context.Context, id slurm.JobID) error {
	return c.control(ctx, "requeue", id, "requeue", string(id))
}

// Update changes a job that has not ended.
func (c *CLI) Update(ctx context.Context, id slurm.JobID, u slurm.Update) error {
	args := updateArgs(id, u)
	if u.NumNodes > 0 {
		if shown, err := c.ask(ctx, "update "+string(id), "scontrol", "--oneliner", "show", "job", string(id)); err == nil {
			args = append(args[:2], append(sizeArgs(shown, u.NumNodes), args[3:]...)...)
		}
	}
	return c.control(ctx, "update", id, args...)
}

// sizeArgs returns arguments that request n nodes with as many tasks and CPUs per node
// as the job has now. shown is the output of scontrol show job. Without these arguments
// Slurm keeps the old numbers, and then it refuses the change or the job can never
// start.
func sizeArgs(shown string, n int) []string {
	args := []string{fmt.Sprintf("NumNodes=%d", n)}
	had := map[string]int{}
	for word := range strings.FieldsSeq(shown) {
		key, value, _ := strings.Cut(word, "=")
		value, _, _ = strings.Cut(value, "-")
		if k, err := strconv.Atoi(value); err == nil && had[key] == 0 {
			had[key] = k
		}
	}
	nodes := had["NumNodes"]
	if nodes == 0 || had["NumTasks"]%nodes != 0 || had["NumCPUs"]%nodes != 0 {
		return args
	}
	args[0] += fmt.Sprintf("-%d", n)
	for _, what := range []string{"NumTasks", "NumCPUs"} {
		if per := had[what] / nodes; per > 0 {
			args = append(args, fmt.Sprintf("%s=%d", what, per*n))
		}
	}
	return args
}

// updateArgs returns the arguments of scontrol.
func updateArgs(id slurm.JobID, u slurm.Update) []string {
	args := []string{"update", "JobId=" + string(id)}
	if u.NumNodes > 0 {
		args = append(args, fmt.Sprintf("NumNodes=%d", u.NumNodes))
	}
	if u.Partition != "" {
		args = append(args, "Partition="+u.Partition)
	}
	if u.TimeLimit > 0 {
		args = append(args, fmt.Sprintf("TimeLimit=%d", int(math.Ceil(u.TimeLimit.Minutes()))))
	}
	if u.QOS != "" {
		args = append(args, "QOS="+u.QOS)
	}
	if len(u.Exclude) > 0 {
		args = append(args, "ExcNodeList="+hostlist.Compress(u.Exclude))
	}
	return args
}

func (c *CLI) control(ctx context.Context, op string, id slurm.JobID, args ...string) error {
	if !slurm.IsJobID(string(id)) {
		return slurm.JobNotFound(id)
	}
	op = fmt.Sprintf("%s %s", op, id)
	r, err := c.run(ctx, command{argv: append([]string{"scontrol"}, args...), env: queryEnviron(c.Environ())})
	if err != nil {
		return withOp(op, err)
	}
	if r.code == 0 || allUnfinishedDone(r.stderr) {
		return nil
	}
	return refusal(op, r)
}

// allUnfinishedDone reports whether scontrol changed every element of an array that the
// change concerns: not those that have ended, and for a requeue not those that wait.
// scontrol exits with 1 even then, and prints one line for each kind of result:
// "6_1: Job has already finished", "6_2-3: No error", "6_4: Job is pending execution".
func allUnfinishedDone(stderr string) bool {
	done := false
	for line := range strings.Lines(stderr) {
		switch line = strings.TrimSpace(line); {
		case strings.HasSuffix(line, ": No error"):
			done = true
		case strings.HasSuffix(line, ": Job has already finished"), strings.HasSuffix(line, ": Job is pending execution"), line == "":
		default:
			return false
		}
	}
	return done
}

// estimate matches the output of sbatch --test-only for a job that could run.
var estimate = lazy.New(`Job [0-9]+ to start at (\S+)(?: a)? using [0-9]+ processors on `)

// Test asks Slurm when it would start s. It queues nothing.
func (c *CLI) Test(ctx context.Context, s slurm.Submission) (slurm.Estimate, error) {
	s.LogDir, s.Lock = "", nil
	if s.Env == nil {
		s.Env = c.Environ()
	}
	s.Env = append(slices.Clone(s.Env), "SLURM_TIME_FORMAT=%s")
	r, err := c.sbatch(ctx, "test", s, "--test-only")
	if err != nil {
		return slurm.Estimate{}, err
	}
	var e slurm.Estimate
	if m := estimate.FindStringSubmatch(r.stderr); m != nil {
		if t := slurm.ParseTime(m[1]); t != nil && slurm.IsEstimate(*t) {
			e.Start = *t
		}
	}
	return e, nil
}
