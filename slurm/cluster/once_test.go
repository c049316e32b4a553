package cluster_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/cluster"
	"github.com/megatron-ops/megatron-ops/slurm/cluster/local"
	"github.com/megatron-ops/megatron-ops/slurm/slurmtest"
)

// heldScript stays in the queue, so that its copies can be counted.
var heldScript = script("--hold --time=5 --job-name=once --output=/dev/null", "true")

// submitOnce is a process of its own that submits token and then ends; it is
// killed at random. It says "go" when it begins and the job's id when it has it.
func submitOnce(kind, state, dir, token string) {
	in := cluster.Intake{Dir: state}
	sub := slurm.Submission{Script: heldScript, Dir: dir, Token: token}
	var id slurm.JobID
	var err error
	fmt.Println("go")
	if kind == "local" {
		in.Gap = 20 * time.Millisecond
		id, _, err = in.Submit(context.Background(), local.New("here", state+"/local"), sub)
	} else {
		id, _, err = in.Submit(context.Background(), cluster.NewCLI("real"), sub)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(id)
}

// startOnce starts submitOnce and returns once it has begun.
func startOnce(t *testing.T, env []string, args ...string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	cmd := exec.Command(os.Args[0], append([]string{submitWord}, args...)...)
	cmd.Env, cmd.Stderr = env, os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	r := bufio.NewReader(out)
	_, err = r.ReadString('\n')
	require.NoError(t, err)
	return cmd, r
}

// killed submits n tokens, each by a process that is killed at a random moment
// within window and then by one that is not, and returns the ids.
func killed(t *testing.T, n int, window time.Duration, kind string, s site) map[string]slurm.JobID {
	t.Helper()
	state := t.TempDir()
	run := fmt.Sprintf("%x", time.Now().UnixNano())
	ids := map[string]slurm.JobID{}
	var mu sync.Mutex
	var work sync.WaitGroup
	next := make(chan int)
	for range 4 {
		work.Go(func() {
			for i := range next {
				token := fmt.Sprintf("%sk%03d", run, i)
				args := []string{kind, state, s.dir, token}
				cmd, _ := startOnce(t, environ(s), args...)
				time.Sleep(rand.N(window))
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
				begin := time.Now()
				cmd, out := startOnce(t, environ(s), args...)
				id, _ := out.ReadString('\n')
				if err := cmd.Wait(); err != nil {
					t.Errorf("%s: %v", token, err)
				}
				if took := time.Since(begin); took > 5*time.Second {
					t.Errorf("%s: the retry took %s", token, took)
				}
				mu.Lock()
				ids[token] = slurm.JobID(strings.TrimSpace(id))
				mu.Unlock()
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	work.Wait()
	return ids
}

// exactlyOne checks that each token has one job and that it is the one told.
func exactlyOne(t *testing.T, s site, ids map[string]slurm.JobID) {
	t.Helper()
	jobs, err := s.Jobs(t.Context(), slurm.Filter{})
	require.NoError(t, err)
	found := map[string][]slurm.JobID{}
	for _, j := range jobs {
		for token := range ids {
			if slurm.HasToken(j, token) {
				found[token] = append(found[token], j.ID)
			}
		}
	}
	for token, id := range ids {
		if len(found[token]) != 1 || found[token][0] != id {
			t.Errorf("%s: told job %q, the cluster has %v", token, id, found[token])
		}
		_ = s.Cancel(context.Background(), id)
	}
}

func TestKilledWhileSubmittingToSlurm(t *testing.T) {
	s, _ := realSite(t)
	ids := killed(t, 200, 40*time.Millisecond, "cli", s)
	require.Len(t, ids, 200)
	exactlyOne(t, s, ids)
}

// A controller that is stopped takes sbatch's request and does not answer. The
// submission is unknown then, and settled by a retry once it goes on again.
func TestSubmittingToAStoppedController(t *testing.T) {
	real := slurmtest.Start(t, slurmtest.Options{MinJobAge: 60})
	c := cluster.NewCLI("real")
	c.Environ = real.Environ
	s := site{backend: c, dir: real.Work, environ: real.Environ}
	in := cluster.Intake{Dir: t.TempDir()}
	require.NoError(t, real.Signal("slurmctld", syscall.SIGSTOP))
	goOn := sync.OnceFunc(func() { _ = real.Signal("slurmctld", syscall.SIGCONT) })
	defer goOn()
	token := fmt.Sprintf("stopped%x", time.Now().UnixNano())
	sub := slurm.Submission{Script: heldScript, Dir: s.dir, Token: token}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	_, _, err := in.Submit(ctx, c, sub)
	require.ErrorIs(t, err, slurm.ErrUnknown)
	require.NotEmpty(t, slurm.FixOf(err).EN)
	goOn()
	begin := time.Now()
	id, _, err := in.Submit(t.Context(), c, sub)
	require.NoError(t, err)
	require.Less(t, time.Since(begin), 5*time.Second)
	exactlyOne(t, s, map[string]slurm.JobID{token: id})
}

func TestKilledWhileSubmittingToLocal(t *testing.T) {
	state := slurmtest.Dir(t)
	s := site{backend: local.New("here", state+"/local"), dir: slurmtest.Dir(t)}
	ids := map[string]slurm.JobID{}
	for i := range 20 {
		token := fmt.Sprintf("localtoken%d", i)
		cmd, _ := startOnce(t, os.Environ(), "local", state, s.dir, token)
		time.Sleep(rand.N(15 * time.Millisecond))
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		cmd, out := startOnce(t, os.Environ(), "local", state, s.dir, token)
		id, _ := out.ReadString('\n')
		require.NoError(t, cmd.Wait())
		ids[token] = slurm.JobID(strings.TrimSpace(id))
	}
	exactlyOne(t, s, ids)
}

// fake is a back end whose answers are given.
type fake struct {
	submit func() (slurm.JobID, error)
	jobs   sync.Map // token → id
	calls  atomic.Int32
}

func (f *fake) Submit(_ context.Context, s slurm.Submission) (slurm.JobID, error) {
	f.calls.Add(1)
	id, err := f.submit()
	if id != "" {
		f.jobs.Store(s.Token, id)
	}
	if err != nil {
		id = ""
	}
	return id, err
}

func (f *fake) Find(_ context.Context, token string, _ time.Time) (slurm.JobID, bool, error) {
	id, ok := f.jobs.Load(token)
	if !ok {
		return "", false, nil
	}
	return id.(slurm.JobID), true, nil //nolint:forcetypeassert // only ids are stored
}

func TestIntake(t *testing.T) {
	timedOut := &slurm.Error{Op: "submit", Msg: "no answer within 15s", Kind: slurm.Unknown}
	refused := &slurm.Error{Op: "submit", Msg: "invalid partition", Kind: slurm.Rejected}
	sub := slurm.Submission{Token: "abcdefgh"}

	t.Run("fifty presses of one button make one job", func(t *testing.T) {
		in := cluster.Intake{Dir: t.TempDir()}
		f := &fake{submit: func() (slurm.JobID, error) { return "7", nil }}
		var first atomic.Int32
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				id, already, err := in.Submit(t.Context(), f, sub)
				if err != nil || id != "7" {
					t.Errorf("%v %v", id, err)
				}
				if !already {
					first.Add(1)
				}
			})
		}
		all.Wait()
		require.EqualValues(t, 1, f.calls.Load())
		require.EqualValues(t, 1, first.Load())
	})
	t.Run("a time-out that was accepted all the same is found", func(t *testing.T) {
		in := cluster.Intake{Dir: t.TempDir(), Gap: time.Millisecond}
		f := &fake{submit: func() (slurm.JobID, error) { return "8", timedOut }}
		id, _, err := in.Submit(t.Context(), f, sub)
		require.NoError(t, err)
		require.EqualValues(t, "8", id)
	})
	t.Run("a time-out that was not accepted is unknown, and a retry submits", func(t *testing.T) {
		in := cluster.Intake{Dir: t.TempDir(), Gap: time.Millisecond}
		f := &fake{submit: func() (slurm.JobID, error) { return "", timedOut }}
		_, _, err := in.Submit(t.Context(), f, sub)
		require.ErrorIs(t, err, slurm.ErrUnknown)
		require.NotEmpty(t, slurm.FixOf(err).ZH)
		f.submit = func() (slurm.JobID, error) { return "9", nil }
		id, already, err := in.Submit(t.Context(), f, sub)
		require.NoError(t, err)
		require.False(t, already)
		require.EqualValues(t, "9", id)
	})
	t.Run("what was refused can be submitted again, mended", func(t *testing.T) {
		in := cluster.Intake{Dir: t.TempDir()}
		f := &fake{submit: func() (slurm.JobID, error) { return "", refused }}
		_, _, err := in.Submit(t.Context(), f, sub)
		require.ErrorIs(t, err, slurm.ErrRejected)
		f.submit = func() (slurm.JobID, error) { return "10", nil }
		id, _, err := in.Submit(t.Context(), f, sub)
		require.NoError(t, err)
		require.EqualValues(t, "10", id)
	})
	t.Run("where the intent cannot be written nothing is submitted", func(t *testing.T) {
		f := &fake{submit: func() (slurm.JobID, error) { return "", errors.New("must not be called") }}
		_, _, err := cluster.Intake{Dir: "/proc/nowhere"}.Submit(t.Context(), f, sub)
		require.Error(t, err)
		_, _, err = cluster.Intake{Dir: t.TempDir()}.Submit(t.Context(), f, slurm.Submission{Token: "../../x"})
		require.ErrorContains(t, err, "token")
		require.Zero(t, f.calls.Load())
	})
}
