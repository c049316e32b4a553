// Package cluster holds the back ends for a real Slurm: its commands on this machine or
// over ssh, and its REST service. They return values of package slurm; their callers
// interpret them. Package local, below, is the back end that needs no Slurm.
package cluster

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// A CLI is a Slurm reached by its commands: sbatch, squeue, sacct, scancel, scontrol,
// sinfo. It passes arguments as lists, so no shell interprets them.
type CLI struct {
	name string
	kind string
	// Environ returns the environment that commands inherit: os.Environ, or a test's.
	Environ func() []string
	// TokenInName puts a submission's token into the job's name, for clusters that keep
	// no comments.
	TokenInName bool
	// Helper is the program that runs commands as another user.
	Helper Helper

	meter   *Meter
	columns *detailColumns
	runner  runner
	mkdir   func(ctx context.Context, dir string) error
}

// NewCLI returns the Slurm of this machine: its commands on the PATH, and its
// SLURM_CONF.
func NewCLI(name string) *CLI {
	return &CLI{
		name: name, kind: "cli", Environ: os.Environ, meter: new(Meter), columns: new(detailColumns), runner: localRunner{},
		mkdir: func(_ context.Context, dir string) error { return os.MkdirAll(dir, 0o777) },
	}
}

// Name is the cluster's name in the configuration.
func (c *CLI) Name() string { return c.name }

// Kind is "cli" or "ssh".
func (c *CLI) Kind() string { return c.kind }

// ask runs a Slurm command in queryEnviron and returns its standard output. Where the
// command fails, the error is an *slurm.Error.
func (c *CLI) ask(ctx context.Context, op string, argv ...string) (string, error) {
	return c.output(ctx, op, command{argv: argv, env: queryEnviron(c.Environ())})
}

// output runs a command and returns its standard output; see ask.
func (c *CLI) output(ctx context.Context, op string, cmd command) (string, error) {
	r, err := c.run(ctx, cmd)
	if err != nil {
		return r.stdout, withOp(op, err)
	}
	if r.code != 0 {
		return r.stdout, refusal(op, r)
	}
	return r.stdout, nil
}

// refusal returns the error of a command that exited with a code other than 0.
func refusal(op string, r result) *slurm.Error {
	e := slurm.FromStderr(op, r.stderr)
	if e.Msg.EN == "" {
		e.Msg = lang.Text{EN: "exit status %d without any output", ZH: "以状态 %d 退出，没有任何输出"}.With(r.code)
		e.Kind = slurm.Broken
	}
	if e.Kind == slurm.Missing && r.host != "" {
		e.Fix = lang.Text{
			EN: "Slurm's commands on %s have no slurm.conf that they can use: name the cluster's file there as slurm_conf of this cluster, or a login node as its host",
			ZH: "%s 上的 Slurm 命令没有可用的 slurm.conf：请在该集群的 slurm_conf 中给出那里的文件，或把 host 设为登录节点",
		}.With(r.host)
	}
	return e
}

func withOp(op string, err error) error {
	if e, ok := errors.AsType[*slurm.Error](err); ok {
		named := *e
		named.Op = op
		return &named
	}
	return lang.Text{EN: "%s: %s", ZH: "%s：%s"}.Err(op, err)
}

// separator returns a random string for separating fields: no job's name can contain it
// on purpose.
func separator() string { return "\x1f" + rand.Text()[:12] + "\x1f" }

// Job asks squeue and then sacct. A job that has left the queue and whose end is not in
// the accounts yet gets slurm.ReasonUnsettled as its reason: a job's absence from the
// queue is never taken for its end.
func (c *CLI) Job(ctx context.Context, id slurm.JobID) (slurm.Job, error) {
	op := fmt.Sprintf("job %s", id)
	if !slurm.IsJobID(string(id)) {
		return slurm.Job{}, slurm.JobNotFound(id)
	}
	rows, err := c.queue(ctx, op, "--jobs="+string(id))
	if err != nil {
		return slurm.Job{}, err
	}
	if j, ok := slurm.Fold(id, rows); ok {
		c.addDetail(ctx, &j, rows)
		c.addArrayLimit(ctx, &j, rows)
		return j, nil
	}
	rows, err = c.accounts(ctx, op, "--jobs="+string(id))
	if err != nil {
		return slurm.Job{}, &slurm.AccountsError{Err: err}
	}
	j, ok := slurm.Fold(id, rows)
	if !ok && id.Array() != id {
		return c.vanished(ctx, op, id)
	}
	if !ok {
		return j, slurm.JobNotFound(id)
	}
	c.addPaths(ctx, &j)
	if !j.State.Ended() {
		j.Reason = slurm.ReasonUnsettled
	}
	return j, nil
}

// addPaths sets the output paths of a job that has left the queue. The accounts of
// 22.05 and 23.11 have no such columns and refuse the query.
func (c *CLI) addPaths(ctx context.Context, j *slurm.Job) {
	sep := separator()
	asked := j.ID
	if strings.Contains(string(j.ID), "+") {
		asked = j.ID.Array() // the first component has the log
	}
	out, err := c.ask(ctx, "", "sacct", "--noheader", "--parsable2", "--allocations", "--delimiter="+sep, "--format="+slurm.PathFormat, "--jobs="+string(asked))
	if err == nil {
		slurm.AddPaths(j, out, sep)
	}
}

// vanished makes up an array element that neither the queue nor the accounts list, from
// its array.
func (c *CLI) vanished(ctx context.Context, op string, id slurm.JobID) (slurm.Job, error) {
	array, err := c.queue(ctx, op, "--jobs="+string(id.Array()))
	if err == nil && len(array) == 0 {
		array, err = c.accounts(ctx, op, "--jobs="+string(id.Array()))
	}
	if err != nil {
		return slurm.Job{}, err
	}
	if j, ok := slurm.Vanished(id, array); ok {
		return j, nil
	}
	return slurm.Job{}, slurm.JobNotFound(id)
}

// queue runs squeue. An id that the controller does not know is no error here: squeue
// fails for one unknown id, but not for two.
func (c *CLI) queue(ctx context.Context, op string, args ...string) ([]slurm.Job, error) {
	sep := separator()
	argv := append([]string{"squeue", "--noheader", "--array", "--states=all", "--format=" + slurm.QueueFormat(sep)}, args...)
	out, err := c.ask(ctx, op, argv...)
	if errors.Is(err, slurm.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	jobs, err := slurm.ParseQueue(out, sep)
	return setCluster(c.name, jobs), unparsable(op, err)
}

// accounts runs sacct, earlier runs of requeued jobs included.
func (c *CLI) accounts(ctx context.Context, op string, args ...string) ([]slurm.Job, error) {
	sep := separator()
	argv := append([]string{
		"sacct", "--noheader", "--parsable2", "--allocations", "--duplicates",
		"--delimiter=" + sep, "--format=" + slurm.AccountFormat(),
	}, args...)
	var out string
	err := c.meter.patiently(ctx, func(ctx context.Context) (err error) {
		out, err = c.ask(ctx, op, argv...)
		return err
	})
	if noAccounts(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	jobs, err := slurm.ParseAccounts(out, sep)
	return setCluster(c.name, jobs), unparsable(op, err)
}

func setCluster(cluster string, jobs []slurm.Job) []slurm.Job {
	for i := range jobs {
		jobs[i].Cluster = cluster
	}
	return jobs
}

// unparsable wraps the error of an answer that could not be parsed.
func unparsable(op string, err error) error {
	if err == nil {
		return nil
	}
	return &slurm.Error{Op: op, Msg: lang.Said(err), Kind: slurm.Broken}
}

// manyIDs is the number of ids above which a query for all jobs is cheaper for the
// controller than a query by id. It also keeps the command line below the system's
// limit.
const manyIDs = 200

// Jobs lists jobs with one squeue, and with one sacct where f asks for ended jobs.
// Where only the accounts fail, it returns the queue's jobs with a slurm.AccountsError.
func (c *CLI) Jobs(ctx context.Context, f slurm.Filter) ([]slurm.Job, error) {
	var args []string
	if f.User != "" {
		args = append(args, "--user="+f.User)
	}
	if f.Partition != "" {
		args = append(args, "--partition="+f.Partition)
	}
	if n := len(f.IDs); n > 0 && n <= manyIDs {
		args = append(args, "--jobs="+joinIDs(f.IDs))
	}
	jobs, err := c.queue(ctx, "list", args...)
	if err != nil {
		return nil, err
	}
	match := f.Matcher()
	jobs = slices.DeleteFunc(jobs, func(j slurm.Job) bool { return !match(j) })
	if f.Since.IsZero() {
		return jobs, nil
	}
	past, err := c.Past(ctx, f)
	return slurm.WithPast(jobs, past, match, err)
}

// Past asks only the accounts, for the jobs of f that started or ended after f.Since.
// Without Since it asks for f.IDs at any time.
func (c *CLI) Past(ctx context.Context, f slurm.Filter) ([]slurm.Job, error) {
	var args []string
	if !f.Since.IsZero() {
		args = append(args, "--starttime="+f.Since.UTC().Format("2006-01-02T15:04:05"))
	}
	switch {
	case f.User != "":
		args = append(args, "--user="+f.User)
	default:
		args = append(args, "--allusers")
	}
	if f.Partition != "" {
		args = append(args, "--partition="+f.Partition)
	}
	if len(f.IDs) == 0 {
		return c.accounts(ctx, "history", args...)
	}
	var jobs []slurm.Job
	for ids := range slices.Chunk(f.IDs, 1000) {
		some, err := c.accounts(ctx, "history", append(args, "--jobs="+joinIDs(ids))...)
		if err != nil {
			return jobs, err
		}
		jobs = append(jobs, some...)
	}
	return jobs, nil
}

func joinIDs(ids []slurm.JobID) string {
	words := make([]string, len(ids))
	for i, id := range ids {
		words[i] = string(id)
	}
	return strings.Join(words, ",")
}

// Find searches the job that carries token, first in the queue, where the comment is
// visible at once, then in the accounts. The accounts get the comment only when the job
// ends, and only at sites that keep comments; they always have the submit line, which
// contains the token too.
func (c *CLI) Find(ctx context.Context, token string, since time.Time) (slurm.JobID, bool, error) {
	op := "find submission " + token
	rows, err := c.queue(ctx, op, "--me")
	if err != nil {
		return "", false, err
	}
	if id, ok := withToken(rows, token); ok {
		return id, true, nil
	}
	sep := separator()
	out, err := c.ask(ctx, op, "sacct", "--noheader", "--parsable2", "--allocations", "--delimiter="+sep,
		"--format="+slurm.TokenFormat, "--starttime="+since.Add(-time.Hour).UTC().Format("2006-01-02T15:04:05"))
	if noAccounts(err) {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	id, ok := slurm.FindToken(out, sep, token)
	return id, ok, nil
}

// noAccounts reports whether err says that the site keeps no accounts.
func noAccounts(err error) bool {
	return err != nil && strings.Contains(err.Error(), "accounting storage is disabled")
}

// withToken returns the job among rows that carries token; for an array element, the id
// of the array.
func withToken(rows []slurm.Job, token string) (slurm.JobID, bool) {
	for _, j := range rows {
		if slurm.HasToken(j, token) {
			return j.ID.Array(), true
		}
	}
	return "", false
}

// Cancel ends a job, an array or an array element. It is idempotent: a job that has
// already ended is no error. The job is surely cancelled only once its state says so.
func (c *CLI) Cancel(ctx context.Context, id slurm.JobID) error {
	op := fmt.Sprintf("cancel %s", id)
	if !slurm.IsJobID(string(id)) {
		return slurm.JobNotFound(id)
	}
	err := c.scancel(ctx, op, string(id))
	if errors.Is(err, slurm.ErrNotFound) {
		if j, err := c.Job(ctx, id); err == nil && j.State.Ended() {
			return nil
		}
		return slurm.JobNotFound(id)
	}
	return err
}

// scancel ends or signals a job or a step; words are its options and the id. One that has
// already ended is no error.
func (c *CLI) scancel(ctx context.Context, op string, words ...string) error {
	// Without --verbose scancel says nothing, and exits with 0, for a job that does not exist.
	r, err := c.run(ctx, command{argv: append([]string{"scancel", "--verbose"}, words...), env: queryEnviron(c.Environ())})
	if err != nil {
		return withOp(op, err)
	}
	r.stderr = errorLines(r.stderr)
	if r.stderr == "" && r.code == 0 || strings.Contains(r.stderr, "already completing or completed") {
		return nil
	}
	return refusal(op, r)
}

func errorLines(stderr string) string {
	var kept strings.Builder
	for line := range strings.Lines(stderr) {
		if strings.Contains(line, "error:") {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

// submitArgs returns the command line of sbatch, which reads the script from standard
// input.
func (c *CLI) submitArgs(s slurm.Submission) ([]string, error) {
	argv := []string{"sbatch", "--parsable"}
	if s.Token != "" {
		opts, err := slurm.ReadDirectives(s.Script)
		if err != nil {
			return nil, &slurm.Error{Op: "submit", Msg: lang.Said(err), Kind: slurm.Rejected}
		}
		if c.TokenInName {
			argv = append(argv, "--job-name="+slurm.TagName(cmp.Or(s.Name, opts.Value("job-name"), "job"), s.Token))
		} else {
			argv = append(argv, "--comment="+slurm.TagComment(opts.Value("comment"), s.Token))
		}
	}
	return append(argv, s.Args...), nil
}

// submitID matches a line of sbatch --parsable: an id, and the cluster where one was
// chosen.
var submitID = lazy.New(`^([1-9][0-9]*)(;[^\s;]+)?$`)

// Submit creates the log directory and hands the script to sbatch. An error of kind
// Unknown or Unreachable leaves open whether a job exists now; Find answers that.
func (c *CLI) Submit(ctx context.Context, s slurm.Submission) (slurm.JobID, error) {
	r, err := c.sbatch(ctx, "submit", s)
	if err != nil {
		return "", err
	}
	// A site's sbatch wrapper may print more, so Submit looks only at lines that are
	// ids.
	var ids []string
	for line := range strings.Lines(r.stdout) {
		if m := submitID.FindStringSubmatch(strings.TrimSpace(line)); m != nil && strings.HasSuffix(line, "\n") {
			ids = append(ids, m[1])
		}
	}
	if len(ids) != 1 {
		return "", &slurm.Error{Op: "submit", Kind: slurm.Unknown, Msg: lang.Text{
			EN: "sbatch answered %s, which is not a job id; the job may have been submitted all the same",
			ZH: "sbatch 返回了 %s，不是作业号；但作业可能已经提交",
		}.With(strconv.Quote(truncate(r.stdout, 200)))}
	}
	return slurm.JobID(ids[0]), nil
}

// sbatch runs sbatch for s.
func (c *CLI) sbatch(ctx context.Context, op string, s slurm.Submission, more ...string) (result, error) {
	argv, err := c.submitArgs(s)
	if err != nil {
		return result{}, err
	}
	if s.LogDir != "" {
		if err := c.mkdir(ctx, Absolute(s.LogDir, s.Dir)); err != nil {
			return result{}, &slurm.Error{Op: op, Msg: lang.Text{EN: "log directory: %s", ZH: "日志目录：%s"}.With(err), Kind: slurm.Rejected}
		}
	}
	env := s.Env
	if _, other := c.runner.(*sudoRunner); env == nil && !other {
		env = c.Environ() // another user's job does not inherit this process's environment
	}
	env = withDefaults(JobEnviron(env), c.Environ(), "PATH", "SLURM_CONF", "HOME", "USER")
	if sbatch := LookIn(c.Environ(), "sbatch"); sbatch != "" {
		env = WithFolder(env, filepath.Dir(sbatch)) // the job's own srun is found there as well
	}
	r, err := c.run(ctx, command{argv: append(argv, more...), env: env, dir: s.Dir, stdin: s.Script, held: s.Lock})
	switch {
	case err != nil && errors.Is(err, slurm.ErrUnreachable):
		// A command that was cut off may have reached the controller.
		e, _ := errors.AsType[*slurm.Error](err)
		return r, &slurm.Error{Op: op, Msg: e.Msg, Kind: slurm.Unknown, Fix: e.Fix}
	case err != nil:
		return r, withOp(op, err)
	case r.code != 0:
		e := refusal(op, r)
		if strings.Contains(r.stderr, "Socket timed out") {
			e.Kind = slurm.Unknown
		}
		return r, e
	}
	return r, nil
}

// Absolute returns path, which is relative to dir unless it is absolute.
func Absolute(path, dir string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// truncate shortens s to at most n bytes and an ellipsis.
func truncate(s string, n int) string {
	if len(s) > n {
		return s[:n] + "…"
	}
	return s
}
