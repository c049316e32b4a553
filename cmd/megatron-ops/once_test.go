package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/slurmtest"
)

// binary builds the program as it is released.
func binary(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "megatron-ops")
	build := exec.Command("go", "build", "-o", path, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return path
}

// A submitter submits to a cluster in one way, with the program as it is released.
type submitter struct {
	t       *testing.T
	name    string
	program string
	env     []string
	args    []string
}

// newSubmitter returns a submitter with a state, a tree and a configuration of its own.
func newSubmitter(t *testing.T, name, program, dir, cluster, config string, env []string) submitter {
	t.Helper()
	tree, state := filepath.Join(dir, "tree"), filepath.Join(dir, "state")
	require.NoError(t, os.MkdirAll(filepath.Join(tree, ".venv"), 0o777))
	require.NoError(t, os.MkdirAll(filepath.Join(tree, "logs"), 0o777))
	require.NoError(t, os.WriteFile(filepath.Join(tree, "train.py"), nil, 0o644))
	for _, d := range []string{dir, tree, filepath.Join(tree, "logs")} {
		require.NoError(t, os.Chmod(d, 0o777))
	}
	file := filepath.Join(dir, "megatron-ops.yaml")
	require.NoError(t, os.WriteFile(file, []byte(config), 0o644))
	return submitter{
		t: t, name: name, program: program,
		env: append(env, "MEGATRON_OPS_CONFIG="+file, "MEGATRON_OPS_STATE_DIR="+state),
		args: []string{
			"submit", "--cluster", cluster, "-o", "json", "--yes", "--worktree", tree, "--nodes", "1", "--gpus-per-node", "0",
			"--script", "train.py", "--time", "5", "--begin", "now+2hours",
		},
	}
}

func (d submitter) command(more ...string) *exec.Cmd {
	cmd := exec.Command(d.program, append(append([]string{}, d.args...), more...)...)
	cmd.Env = d.env
	return cmd
}

// submit submits and waits for the answer.
func (d submitter) submit(more ...string) (id string, already bool, err error) {
	cmd := d.command(more...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", false, fmt.Errorf("%w: %s%s", err, stdout.String(), stderr.String())
	}
	var out struct {
		JobID   string `json:"job_id"`
		Already bool   `json:"already_submitted"`
	}
	err = json.Unmarshal(stdout.Bytes(), &out)
	return out.JobID, out.Already, err
}

// A killOutcome counts what became of requests whose process was killed.
type killOutcome struct {
	jobs                     map[string]string // name → id that the retry returned
	before, between, settled int               // killed before the job was handed over; between that and the answer; after the answer
	slowest                  time.Duration
}

// killAll submits n requests, each by a process that is killed with SIGKILL at a random
// moment of the submission, and then again by one that is not killed.
func (d submitter) killAll(n int) killOutcome {
	d.t.Helper()
	window := time.Hour
	for i := range 3 { // the first opens connections
		begin := time.Now()
		_, _, err := d.submit("--name", fmt.Sprintf("%s-warm-%d", d.name, i))
		require.NoError(d.t, err)
		window = min(window, time.Since(begin))
	}
	const workers = 4
	window *= 2 // they share the machine
	// The window follows the machine's pace: it grows where a kill came before the job was
	// made, and shrinks where it did not, so that two kills of three come before.
	follow := func(before bool) {
		if window = window * 9 / 10; before {
			window = window * 7 / 6
		}
	}
	f := killOutcome{jobs: map[string]string{}}
	var mu sync.Mutex
	var work sync.WaitGroup
	next := make(chan int)
	for range workers {
		work.Go(func() {
			for i := range next {
				name := fmt.Sprintf("%s-%03d", d.name, i)
				// Every second one has no key: the same request typed again counts as
				// the same.
				more := []string{"--name", name}
				if i%2 == 0 {
					more = append(more, "--idempotency-key", name)
				}
				cmd := d.command(more...)
				var answer bytes.Buffer
				cmd.Stdout = &answer
				if err := cmd.Start(); err != nil {
					d.t.Error(err)
					continue
				}
				mu.Lock()
				moment := rand.N(window)
				mu.Unlock()
				time.Sleep(moment)
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
				answered := json.Valid(answer.Bytes()) && answer.Len() > 0
				if answered && i%2 == 1 {
					// Told once, it would be a new wish the second time.
					var out struct {
						JobID string `json:"job_id"`
					}
					_ = json.Unmarshal(answer.Bytes(), &out)
					mu.Lock()
					f.jobs[name], f.settled = out.JobID, f.settled+1
					follow(false)
					mu.Unlock()
					continue
				}
				begin := time.Now()
				id, already, err := d.submit(more...)
				took := time.Since(begin)
				if err != nil {
					d.t.Errorf("%s: the retry: %v", name, err)
				}
				mu.Lock()
				f.jobs[name], f.slowest = id, max(f.slowest, took)
				follow(!answered && !already)
				switch {
				case answered:
					f.settled++
				case already:
					f.between++
				default:
					f.before++
				}
				mu.Unlock()
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	work.Wait()
	d.t.Logf("killed %d: %d before a job was made, %d between the job and the answer, %d after the answer; slowest retry %s", n, f.before, f.between, f.settled, f.slowest)
	return f
}

// exactlyOne checks, in Slurm's own accounting, that each request has exactly one job,
// and that it is the reported one.
func exactlyOne(t *testing.T, real *slurmtest.Cluster, f killOutcome, n int) {
	t.Helper()
	require.Len(t, f.jobs, n)
	count := func() map[string][]string {
		out, err := real.Run(t.Context(), "sacct", "-X", "-n", "-P", "-D", "-a", "-S", "now-1hour", "-E", "now+1day", "-o", "JobID,JobName")
		require.NoError(t, err)
		found := map[string][]string{}
		for line := range strings.Lines(out) {
			id, name, _ := strings.Cut(strings.TrimSpace(line), "|")
			found[name] = append(found[name], id)
		}
		return found
	}
	require.Eventually(t, func() bool { // the accounts lag a little
		found := count()
		for name := range f.jobs {
			if len(found[name]) == 0 {
				return false
			}
		}
		return true
	}, 20*time.Second, 200*time.Millisecond)
	time.Sleep(time.Second) // for one that is too many
	found := count()
	for name, id := range f.jobs {
		require.Equal(t, []string{id}, found[name], name)
	}
	for _, user := range []string{"root", "alice"} {
		_, err := real.Run(context.Background(), "scancel", "--user="+user)
		require.NoError(t, err)
	}
}

// mostWait is far below the minute after which an attempt counts as over: a retry finds out
// whether the killed process handed its job over, and does not wait until then.
const mostWait = 30 * time.Second

func TestKilledTwoHundredTimesWhileSubmitting(t *testing.T) {
	real := slurmtest.Start(t, slurmtest.Options{})
	dir, err := os.MkdirTemp(real.Work, "once-")
	require.NoError(t, err)
	d := newSubmitter(t, "cli", binary(t), dir, slurmCluster, "{}", real.Environ())
	f := d.killAll(200)
	require.Less(t, f.slowest, mostWait)
	require.Greater(t, f.before, 20, "the kills are spread over the submission")
	require.Greater(t, f.between+f.settled, 5, "the kills are spread over the submission")
	exactlyOne(t, real, f, 200)
}

// The same through other back ends: where the request leaves this machine, and where it
// runs as another user.
func TestKilledWhileSubmittingElsewhere(t *testing.T) {
	real := slurmtest.Start(t, slurmtest.Options{})
	program := binary(t)
	jwt, err := real.Token(t.Context(), "root")
	require.NoError(t, err)
	ssh := real.SSHD(t)
	shareConnections(t, ssh)
	for name, config := range map[string]string{
		"ssh":  fmt.Sprintf("clusters: {far: {kind: ssh, host: login, ssh_config: %s, slurm_bin: %s}}", ssh, real.Bin()),
		"rest": fmt.Sprintf("clusters: {far: {kind: rest, url: %q, token_file: TOKEN}}", real.REST),
		"name": fmt.Sprintf("clusters: {far: {kind: cli, slurm_conf: %s, token_in_name: true}}", real.Conf()),
	} {
		t.Run(name, func(t *testing.T) {
			dir, err := os.MkdirTemp(real.Work, "once-")
			require.NoError(t, err)
			token := filepath.Join(dir, "token")
			require.NoError(t, os.WriteFile(token, []byte(jwt), 0o600))
			d := newSubmitter(t, name, program, dir, "far", strings.Replace(config, "TOKEN", token, 1), real.Environ())
			f := d.killAll(24)
			require.Less(t, f.slowest, mostWait)
			if name == "name" {
				out, err := real.Run(t.Context(), "squeue", "-h", "-o", "%i %j")
				require.NoError(t, err)
				for line := range strings.Lines(out) {
					id, tagged, _ := strings.Cut(strings.TrimSpace(line), " ")
					for plain, told := range f.jobs {
						if told == id {
							delete(f.jobs, plain)
							f.jobs[tagged] = id
						}
					}
				}
			}
			exactlyOne(t, real, f, 24)
		})
	}
}

// shareConnections makes an ssh_config keep connections open, as people do.
func shareConnections(t *testing.T, config string) {
	t.Helper()
	control, err := os.MkdirTemp("/tmp", "ctl")
	require.NoError(t, err)
	f, err := os.OpenFile(config, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = fmt.Fprintf(f, "  ControlMaster auto\n  ControlPath %s/%%C\n  ControlPersist 30\n", control)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	t.Cleanup(func() {
		_ = exec.Command("ssh", "-F", config, "-O", "exit", "login").Run()
		_ = os.RemoveAll(control)
	})
}

// A suspended controller accepts the request and does not answer: the person learns
// that the outcome is unknown, and the retry finds the job once the controller resumes.
func TestSubmittingToAStoppedController(t *testing.T) {
	real := slurmtest.Start(t, slurmtest.Options{MinJobAge: 60})
	dir, err := os.MkdirTemp(real.Work, "once-")
	require.NoError(t, err)
	d := newSubmitter(t, "cli", binary(t), dir, slurmCluster, "{}", real.Environ())
	words := []string{"--name", "stopped", "--idempotency-key", "stopped"}
	require.NoError(t, real.Signal("slurmctld", syscall.SIGSTOP))
	goOn := sync.OnceFunc(func() { _ = real.Signal("slurmctld", syscall.SIGCONT) })
	defer goOn()
	_, _, err = d.submit(words...)
	require.ErrorContains(t, err, "not known yet")
	require.ErrorContains(t, err, "same key")
	goOn()
	id, already, err := d.submit(words...)
	require.NoError(t, err)
	require.True(t, already)
	exactlyOne(t, real, killOutcome{jobs: map[string]string{"stopped": id}}, 1)
}

func TestKilledWhileSubmittingToTheEmbeddedBackEnd(t *testing.T) {
	if testing.Short() {
		t.Skip("the program as it is shipped, built and killed, is not for -short")
	}
	d := newSubmitter(t, "local", binary(t), slurmtest.Dir(t), localCluster, "{}", os.Environ())
	f := d.killAll(24)
	list := exec.Command(d.program, "list", "--cluster", localCluster, "--all", "-o", "json")
	list.Env = d.env
	out, err := list.Output()
	require.NoError(t, err)
	var all struct {
		Jobs []struct {
			JobID string `json:"job_id"`
			Name  string `json:"name"`
		} `json:"jobs"`
	}
	require.NoError(t, json.Unmarshal(out, &all))
	found := map[string][]string{}
	for _, j := range all.Jobs {
		found[j.Name] = append(found[j.Name], j.JobID)
	}
	for name, id := range f.jobs {
		require.Equal(t, []string{id}, found[name], name)
	}
}
