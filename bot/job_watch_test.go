package bot_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot"
	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/bot/record"
	"github.com/megatron-ops/megatron-ops/bot/slacktest"
	"github.com/megatron-ops/megatron-ops/internal/account"
	"github.com/megatron-ops/megatron-ops/internal/linkproof"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/watch"
)

// A watchedYard has accounting too, which a watcher needs.
type watchedYard struct{ *yard }

func (w watchedYard) Past(ctx context.Context, f slurm.Filter) ([]slurm.Job, error) {
	f.All = true
	return w.Jobs(ctx, f)
}

func watched(c *bot.Config) {
	y := c.Service.Clusters["yard"].(*yard)
	c.Service.Clusters["yard"] = watchedYard{y}
	c.Interval = 100 * time.Millisecond
	c.Watchers = watching(watchedYard{y}, c.Interval)
}

// watching returns a watcher of a yard; running starts it.
func watching(y watchedYard, every time.Duration) map[string]*watch.Watcher {
	return map[string]*watch.Watcher{"yard": watch.New(y, watch.Options{Interval: every, Floor: every})}
}

func TestAJobsLifeIsSeenInItsThread(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t, watched)
		submitted(t, s)

		log := filepath.Join(t.TempDir(), "gpt-4711.out")
		var b strings.Builder
		for i := 1; i <= 40; i++ {
			fmt.Fprintf(&b, " [2026-11-20 12:00:%02d] iteration %8d/     100 | consumed samples: %12d | elapsed time per iteration (ms): 1234.5 | throughput per GPU (TFLOP/s/GPU): 410.2 | learning rate: 1.000000E-04 | global batch size:    64 | lm loss: %.6E | loss scale: 1.0 | grad norm: 1.234 | number of skipped iterations:   0 | number of nan iterations:   0 |\n", i, i, i*64, 10.0/float64(i))
		}
		require.NoError(t, os.WriteFile(log, []byte(b.String()), 0o600))
		limit := int64(3600)
		job := slurm.Job{
			ID:         "4711",
			Name:       "gpt",
			User:       "ada",
			Partition:  "gpu",
			State:      slurm.Running,
			Nodes:      []string{"n1", "n2"},
			GPUs:       16,
			ElapsedS:   60,
			TimeLimitS: &limit,
			Stdout:     log,
		}
		s.yard.put(job)
		s.Wait("numbers on the card", func(st slacktest.State) bool {
			list := cards(st, "4711")
			return len(list) == 1 && strings.Contains(text(list[0]), "running")
		})

		b.WriteString("[rank3]: Traceback (most recent call last):\n[rank3]:   File \"/w/pretrain_gpt.py\", line 12, in forward_step\n[rank3]:     x = model(tokens)\n[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total capacity of 79.11 GiB of which 1.00 GiB is free.\n")
		require.NoError(t, os.WriteFile(log, []byte(b.String()), 0o600))
		exit := "1:0"
		job.State, job.ExitCode = slurm.Failed, &exit
		s.yard.put(job)
		st := s.Wait("the cause and the curve", func(st slacktest.State) bool {
			list := cards(st, "4711")
			return len(list) == 1 && strings.Contains(text(list[0]), "failed") &&
				stored(st, "loss.png") && stored(st, "4711.log")
		})
		c := cards(st, "4711")[0]
		require.Contains(t, strings.ToLower(text(c)), "memory", "the cause comes first")
		require.Contains(t, text(c), "40 of 100 (40 %)")
		for _, f := range st.Files {
			require.Equal(t, c.TS, f.Thread, "%s: script, log and picture are in the thread", f.Name)
			switch f.Name {
			case "loss.png":
				require.True(t, bytes.HasPrefix(f.Data, []byte("\x89PNG")))
			case "4711.log":
				require.Contains(t, string(f.Data), "OutOfMemoryError")
			}
		}
		n := 0
		for _, m := range st.Messages {
			if m.Only == "" && m.Thread == "" && m.Channel == "C1" {
				n++
			}
		}
		require.Equal(t, 1, n, "one message in the channel for the whole life of the job")
	})
}

// stored reports whether a file of that name was uploaded completely.
func stored(st slacktest.State, name string) bool {
	return slices.ContainsFunc(st.Files, func(f *slacktest.Stored) bool { return f.Name == name && f.Done })
}

func TestWatchingGoesOnAfterARestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t, watched)
		submitted(t, s)
		running(t, bot.Config{
			SigningSecret: secret, BotToken: "xoxb-test", APIURL: s.APIURL, Store: s.store.Slack(), Service: s.service, Interval: 50 * time.Millisecond,
			Watchers: watching(s.service.Clusters["yard"].(watchedYard), 50*time.Millisecond),
		})
		s.yard.put(slurm.Job{ID: "4711", Name: "gpt", User: "ada", State: slurm.Completed})
		st := s.Wait("the end", func(st slacktest.State) bool {
			list := cards(st, "4711")
			return len(list) == 1 && strings.Contains(text(list[0]), "completed")
		})
		require.Len(t, cards(st, "4711"), 1)
	})
}

func TestACodeWrittenOnTheClusterLinksItsWriter(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, os.ModeSticky|0o777))
	folder := linkproof.Folder{Dir: dir}
	s := play(t, func(c *bot.Config) {
		c.Policy.Links = nil
		c.Policy.LinkProof = func(ctx context.Context, code string, since time.Time) (account.User, error) {
			// The test may run as root, which cannot be linked; the proof itself is real.
			_, err := folder.Owner(ctx, code, since)
			if refused := (*linkproof.Refused)(nil); errors.As(err, &refused) && strings.Contains(err.Error(), "root is nobody") {
				return account.User{Name: "ada", UID: 1001}, nil
			}
			return account.User{}, err
		}
	})
	s.Slash("link")
	msg := s.said("Prove which cluster user you are", "megatron-ops link ")
	code := strings.Fields(text(msg)[strings.Index(text(msg), "megatron-ops link ")+len("megatron-ops link "):])[0]
	action, _ := buttonOf(t, msg, "I have run it")
	s.Press(msg, action, "", "U1")
	s.said("was not written on the cluster yet")

	require.NoError(t, folder.Write(t.Context(), code))
	s.Press(msg, action, "", "U2") // somebody else presses
	s.Slash("whoami", map[string]any{"user_id": "U2"})
	s.said("T1/U2", "not linked")
	s.Press(msg, action, "", "U1")
	s.said("you are ada on the cluster")
	s.Slash("submit --yes " + spec)
	s.said("gpt submitted to yard as job 4711")

	s.Slash("unlink")
	s.said("not linked to a cluster user any more")
	s.Slash("cancel 4711 --yes")
	s.said("not linked to a cluster user", "Link my account")
}

// News is not lost while the store refuses messages for a time.
func TestTheEndOfAJobOutlivesADatabaseThatIsAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		away := &awayStore{}
		s := play(t, watched, func(c *bot.Config) { away.Store, c.Store = c.Store, away })
		s.Slash("subscribe all")
		s.said("Followed here")
		s.yard.put(slurm.Job{ID: "9000", Name: "run", User: "grace", State: slurm.Running})
		s.Wait("the card", func(st slacktest.State) bool { return len(cards(st, "9000")) == 1 })
		away.times.Store(2)
		s.yard.put(slurm.Job{ID: "9000", Name: "run", User: "grace", State: slurm.Completed})
		s.Wait("its end", func(st slacktest.State) bool { return posted(st, "): completed") == 2 }) // on the card and in its thread
		require.LessOrEqual(t, away.times.Load(), int64(0), "the store was away")
	})
}

// The end of a job that ended before anybody looked at it, such as during a restart of the
// server, is reported once.
func TestAJobThatEndedUnseenIsToldOfOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ended := time.Now().Add(-time.Minute)
		s := play(t, watched, func(c *bot.Config) {
			s := c.Store.(*store.Slack)
			require.NoError(t, s.Put(t.Context(), "follow", "all@T1/C1", "U1", time.Time{}))
			c.Service.Clusters["yard"].(watchedYard).put(slurm.Job{ID: "9000", Name: "run", User: "grace", State: slurm.Completed, EndedAt: &ended})
			long := ended.Add(-time.Hour)
			c.Service.Clusters["yard"].(watchedYard).put(slurm.Job{ID: "8000", Name: "old", User: "grace", State: slurm.Completed, EndedAt: &long})
		})
		s.Wait("its end", func(st slacktest.State) bool { return posted(st, "(9000): completed") == 2 })
		s.Slash("help") // some looks later
		s.said("What you can do now")
		st := s.State()
		require.Equal(t, 2, posted(st, "(9000): completed"), "on the card and in its thread")
		require.Zero(t, posted(st, "old"))
	})
}

// A forgetful store fails some times to read the documents of one kind.
type forgetful struct {
	record.Store
	kind  string
	times atomic.Int64
}

func (f *forgetful) Keys(ctx context.Context, kind string, now time.Time) ([]string, error) {
	if kind == f.kind && f.times.Add(-1) >= 0 {
		return nil, errors.New("the database is starting up")
	}
	return f.Store.Keys(ctx, kind, now)
}

func (f *forgetful) Get(ctx context.Context, kind, key string, now time.Time, value any) (bool, error) {
	if kind == f.kind && f.times.Add(-1) >= 0 {
		return false, errors.New("the database is starting up")
	}
	return f.Store.Get(ctx, kind, key, now, value)
}

// A person who submits while the database restarts gets the card all the same.
func TestACardIsBegunOnceTheDatabaseIsThere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		away := &forgetful{kind: "card"}
		away.times.Store(2)
		submitted(t, play(t, func(c *bot.Config) { away.Store, c.Store = c.Store, away }))
		require.LessOrEqual(t, away.times.Load(), int64(0), "the store was away")

		full := &awayStore{} // which can be read
		full.times.Store(1)
		submitted(t, play(t, func(c *bot.Config) { full.Store, c.Store = c.Store, full }))
		require.LessOrEqual(t, full.times.Load(), int64(0), "the store was away")
	})
}

// A card whose followers could not be read is sent later.
func TestACardOutlivesADatabaseThatIsAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		away := &forgetful{kind: "follow"}
		s := play(t, func(c *bot.Config) { away.Store, c.Store = c.Store, away })
		s.Slash("subscribe grace", map[string]any{"channel_id": "C9"})
		s.said("Followed here: jobs of grace")
		news := card.News{Job: slurm.Job{ID: "5000", Cluster: "yard", Name: "moe", User: "grace", State: slurm.Running}}
		away.times.Store(1 << 40)
		require.Error(t, s.bot.Tell(t.Context(), news), "whoever tells must know that nobody was told")
		away.times.Store(0)
		require.NoError(t, s.bot.Tell(t.Context(), news))
		st := s.Wait("the card", func(st slacktest.State) bool { return len(cards(st, "5000")) > 0 })
		require.Len(t, cards(st, "5000"), 1)
	})
}

// A server that starts while the database is away follows the cards once it is back.
func TestCardsAreTakenUpOnceTheDatabaseIsThere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t)
		submitted(t, s)
		away := &forgetful{Store: s.store.Slack(), kind: "alive"}
		away.times.Store(2)
		running(t, bot.Config{
			SigningSecret: secret, BotToken: "xoxb-test", APIURL: s.APIURL, Store: away, Service: s.service, Interval: 50 * time.Millisecond,
			Watchers: watching(watchedYard{s.yard}, 50*time.Millisecond), Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		})
		s.yard.put(slurm.Job{ID: "4711", Name: "gpt", User: "ada", State: slurm.Completed})
		s.Wait("the end", func(st slacktest.State) bool {
			list := cards(st, "4711")
			return len(list) == 1 && strings.Contains(text(list[0]), "completed")
		})
	})
}

// The end of a job that ended before its card was made, such as during a restart of the server,
// is reported in the card's thread too.
func TestTheEndOfAShortJobIsToldToo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := play(t, func(c *bot.Config) { c.Service.Clusters["yard"].(*yard).short = true }, watched)
		submitted(t, s)
		s.Wait("its end", func(st slacktest.State) bool { return posted(st, "): completed") == 2 }) // on the card and in its thread
	})
}

// An awayStore refuses some times to queue messages.
type awayStore struct {
	record.Store
	times atomic.Int64
}

func (a *awayStore) Enqueue(ctx context.Context, owed ...store.SlackMessage) error {
	if a.times.Add(-1) >= 0 {
		return errors.New("the database is starting up")
	}
	return a.Store.Enqueue(ctx, owed...)
}
