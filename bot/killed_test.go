package bot_test

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot"
	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/bot/slacktest"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// TestMain makes the test binary also the bot of TestKilledAtAnyMoment. That process ends with
// the tests that started it, even where they are killed.
func TestMain(m *testing.M) {
	if os.Getenv("BOT_TEST_STATE") != "" {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			os.Exit(0)
		}()
	}
	if os.Getenv("BOT_TEST_MODEL") != "" {
		os.Exit(serveWithModel())
	}
	if os.Getenv("BOT_TEST_STATE") != "" {
		os.Exit(serveForKill())
	}
	sideBySide()
	slacktest.InstallTransport()
	remove := inMemory()
	code := m.Run()
	remove()
	os.Exit(code)
}

// inMemory puts the folders of short tests into memory where the system has a folder for that,
// since a database on a disk waits for the disk at every commit. The returned function removes
// what is left.
func inMemory() (remove func()) {
	if !testing.Short() {
		return func() {}
	}
	dir, err := os.MkdirTemp("/dev/shm", "bot-test-")
	if err != nil || os.Setenv("TMPDIR", dir) != nil {
		return func() {}
	}
	return func() { _ = os.RemoveAll(dir) }
}

// sideBySide runs eight tests a core in parallel unless -parallel is given, since those that
// start processes or use the real clock wait more than they compute.
func sideBySide() {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if given {
		return
	}
	if err := flag.Set("test.parallel", strconv.Itoa(8*runtime.GOMAXPROCS(0))); err != nil {
		panic(err)
	}
}

// killable configures a bot in a process of its own.
func killable(st *store.Store) bot.Config {
	yard := &yard{jobs: map[slurm.JobID]slurm.Job{}}
	return bot.Config{
		SigningSecret: secret, BotToken: "xoxb-test", APIURL: os.Getenv("BOT_TEST_API"), Store: st.Slack(),
		Service: &ops.Service{
			As:       func(cl ops.Cluster, _ string) (ops.Cluster, error) { return cl, nil },
			Clusters: map[string]ops.Cluster{"yard": yard},
			Default:  "yard",
			Now:      time.Now,
			Store:    func() (*store.Store, error) { return st, nil },
		},
	}
}

// serveForKill runs a bot until it is killed, and sends cards of jobs.
func serveForKill() int {
	ctx := context.Background()
	st, err := store.Open(ctx, os.Getenv("BOT_TEST_STATE"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	b, err := bot.New(killable(st))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := st.Slack().Put(ctx, "follow", "all@T1/C1", "U1", time.Time{}); err != nil {
		return 1
	}
	go func() { _ = b.Run(ctx) }()
	n, _ := strconv.Atoi(os.Getenv("BOT_TEST_JOBS"))
	for i := range n {
		_ = b.Tell(ctx, card.News{Job: slurm.Job{ID: slurm.JobID(fmt.Sprint(9000 + i)), Cluster: "yard", Name: "run", User: "grace", State: slurm.Pending}})
	}
	fmt.Println("told")
	select {}
}

func TestKilledAtAnyMomentNothingIsLostAndNothingTwice(t *testing.T) {
	t.Parallel()
	slackd := slacktest.Start(t, slacktest.Config{SigningSecret: secret})
	slackd.Fault(slacktest.Fault{Method: "chat.postMessage", Rate: 1, DelayMS: 60}) // so that kills hit sends
	state := filepath.Join(t.TempDir(), "state.db")
	kills := 12
	if testing.Short() {
		kills = 5 // a start takes more than what is done after it
	}
	jobs := kills + 1
	start := func() (cmd *exec.Cmd, told *bufio.Reader) {
		cmd = exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "BOT_TEST_STATE="+state, "BOT_TEST_API="+slackd.APIURL, "BOT_TEST_JOBS="+strconv.Itoa(jobs))
		cmd.Stderr = os.Stderr
		_, err := cmd.StdinPipe()
		require.NoError(t, err)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		return cmd, bufio.NewReader(out)
	}
	sends := func(st slacktest.State) int { return len(calls(st, "chat.postMessage")) }
	for i := range kills {
		sent, stood := sends(slackd.State()), len(cards(slackd.State(), "90"))
		cmd, told := start()
		switch i % 3 { // each moment is one at which something could be lost, or come twice
		case 0:
			_, err := told.ReadString('\n')
			require.NoError(t, err)
		case 1:
			slackd.Wait("a send", func(st slacktest.State) bool { return sends(st) > sent })
		case 2:
			slackd.Wait("a card", func(st slacktest.State) bool { return len(cards(st, "90")) > stood })
		}
		require.NoError(t, cmd.Process.Kill())
		_ = cmd.Wait()
		slackd.AwaitHangUp()
	}
	slackd.Calm()
	last, _ := start()
	t.Cleanup(func() { _ = last.Process.Kill(); _ = last.Wait() })
	slackd.Wait("every card", func(st slacktest.State) bool { return len(cards(st, "90")) >= jobs })
	kept, err := store.Open(t.Context(), state)
	require.NoError(t, err)
	settled(t, kept)
	require.NoError(t, kept.Close())
	st := slackd.State()
	seen := map[string]int{}
	for _, m := range cards(st, "90") {
		seen[idOf(m.Text)]++
	}
	require.Len(t, seen, jobs, "%v", seen)
	for id, n := range seen {
		require.Equal(t, 1, n, "job %s has %d cards", id, n)
	}
}
