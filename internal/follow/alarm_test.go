package follow

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/joblogs"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
	"github.com/megatron-ops/megatron-ops/internal/store"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// A bench is a cluster with one running job. The test writes the job's log.
type bench struct {
	opstest.Bare
	job slurm.Job
}

func (b *bench) Name() string                                        { return "bench" }
func (b *bench) Kind() string                                        { return "cli" }
func (b *bench) Job(context.Context, slurm.JobID) (slurm.Job, error) { return b.job, nil }

// A life is a running job as its follower sees it: what it writes, and when.
type life struct {
	t    *testing.T
	f    *Follower
	st   *store.Store
	job  slurm.Job
	log  strings.Builder
	at   time.Time // of the job's own clock
	told []joblogs.Alarm
}

func newLife(t *testing.T) *life {
	l := &life{t: t, at: time.Date(2026, 6, 11, 10, 0, 0, 0, time.UTC)}
	dir := t.TempDir()
	l.job = slurm.Job{
		ID:      "77",
		Cluster: "bench",
		Name:    "gpt",
		User:    "ada",
		State:   slurm.Running,
		Nodes:   []string{"gpu01", "gpu02"},
		GPUs:    16,
		WorkDir: dir,
		Stdout:  filepath.Join(dir, "gpt-77.out"),
	}
	st, err := store.Open(t.Context(), filepath.Join(dir, "state.db"))
	require.NoError(t, err)
	t.Cleanup(func() { st.Close() })
	l.st = st
	l.f = &Follower{
		Service: &ops.Service{
			Clusters: map[string]ops.Cluster{"bench": &bench{job: l.job}}, Default: "bench", Now: time.Now, Self: "ada",
			Store: func() (*store.Store, error) { return st, nil },
		},
		Log: calmLog(t),
		Tell: func(_ context.Context, n News) error {
			require.NotEmpty(t, n.Alarms, "news of nothing")
			l.told = append(l.told, n.Alarms...)
			return nil
		},
	}
	l.log.WriteString("using world size: 16, data-parallel size: 16, tensor-model-parallel size: 1, pipeline-model-parallel size: 1\n  world_size ...................................... 16\n  seq_length ...................................... 4096\n> initializing torch distributed ...\n")
	return l
}

// submitted stores the specification that the job was submitted with.
func (l *life) submitted(spec string) {
	sub := store.Submission{
		Key:       "ada/bench/k",
		Token:     "k",
		Cluster:   "bench",
		Owner:     "ada",
		Name:      "gpt",
		Spec:      []byte(spec),
		Dir:       l.job.WorkDir,
		State:     store.Submitting,
		CreatedAt: time.Now(),
	}
	_, _, err := l.st.Begin(l.t.Context(), sub)
	require.NoError(l.t, err)
	require.NoError(l.t, l.st.Finish(l.t.Context(), sub.Key, store.Submitted, l.job.ID, "", time.Now()))
}

// look makes the follower look at the job once, after the log has been silent for this
// long.
func (l *life) look(silent time.Duration) {
	require.NoError(l.t, os.WriteFile(l.job.Stdout, []byte(l.log.String()), 0o600))
	at := time.Now().Add(-silent)
	require.NoError(l.t, os.Chtimes(l.job.Stdout, at, at))
	l.f.reportAlarms(l.t.Context(), l.st, l.job)
}

// pause lets time pass without output. The follower looks every minute for the first
// ten minutes, and then every five.
func (l *life) pause(d time.Duration) {
	for s := time.Minute; s <= d; s += max(time.Minute, min(s/2, 5*time.Minute)) {
		l.look(s)
	}
	l.at = l.at.Add(d)
}

func (l *life) say(line string) { l.log.WriteString(line + "\n") }

// iterate logs the iterations after from, up to and including to. The follower looks
// after every tenth.
func (l *life) iterate(from, to int, each func(i int) (ms float64, loss, grad string, batch int)) {
	for i := from + 1; i <= to; i++ {
		ms, loss, grad, batch := each(i)
		l.at = l.at.Add(time.Duration(ms) * time.Millisecond)
		fmt.Fprintf(&l.log, " [%s] iteration %8d/    1000 | consumed samples: %12d | elapsed time per iteration (ms): %.1f | throughput per GPU (TFLOP/s/GPU): 400.0 | learning rate: 1.500000E-04 | global batch size: %5d | lm loss: %s | loss scale: 1.0 | grad norm: %s | number of skipped iterations:   0 | number of nan iterations:   0 |\n",
			l.at.Format("2006-01-02 15:04:05.000000"), i, i*batch, ms, batch, loss, grad)
		if i%10 == 0 || i == to {
			l.look(3 * time.Second)
		}
	}
}

func usual(i int) (ms float64, loss, grad string, batch int) {
	return 4000 + 100*math.Sin(float64(i)), fmt.Sprintf("%.6E", 2+8/math.Sqrt(float64(i))), "0.512", 256
}

func shared(i int) string { _, loss, _, _ := usual(i); return loss }

// TestHealthyRunsRingNoAlarm has ten kinds of healthy runs that look faulty for a
// while. The follower looks at each throughout.
func TestHealthyRunsRingNoAlarm(t *testing.T) {
	for name, lives := range map[string]func(l *life){
		"usual": func(l *life) { l.iterate(0, 120, usual) },
		"eighteen minutes until the first iteration": func(l *life) {
			l.say("> building train, validation, and test datasets for GPT ...")
			l.pause(18 * time.Minute)
			l.say("training ...")
			l.iterate(0, 40, usual)
		},
		"slow first iterations": func(l *life) {
			l.iterate(0, 60, func(i int) (float64, string, string, int) {
				if i < 6 {
					return 60000, shared(i), "0.5", 256
				}
				return usual(i)
			})
		},
		"a checkpoint each twenty": func(l *life) {
			for k := range 5 {
				l.iterate(20*k, 20*k+20, usual)
				l.say(fmt.Sprintf("saving checkpoint at iteration %8d to /ckpt/gpt in torch_dist format", 20*k+20))
				l.pause(8 * time.Minute)
				l.say(fmt.Sprintf("  successfully saved checkpoint from iteration %8d to /ckpt/gpt", 20*k+20))
			}
		},
		"evaluation pauses": func(l *life) {
			for k := range 3 {
				l.iterate(30*k, 30*k+30, usual)
				l.say("Evaluating on 32000 samples")
				l.pause(17 * time.Minute)
				l.say(fmt.Sprintf(" validation loss at iteration %d | lm loss value: 2.500000E+00 | lm loss PPL: 1.2E+01 |", 30*k+30))
			}
		},
		"a long evaluation that it has had before": func(l *life) {
			for k := range 3 {
				l.iterate(30*k, 30*k+30, usual)
				if k == 0 { // nobody looked then
					l.at = l.at.Add(45 * time.Minute)
					continue
				}
				l.pause(45 * time.Minute)
			}
		},
		"loss scale warm-up": func(l *life) {
			l.iterate(0, 60, func(i int) (float64, string, string, int) {
				ms, loss, grad, batch := usual(i)
				if i < 9 {
					grad = "inf"
				}
				return ms, loss, grad, batch
			})
		},
		"a spike that comes back": func(l *life) {
			l.iterate(0, 120, func(i int) (float64, string, string, int) {
				if i >= 60 && i < 63 {
					return 4000, "6.000000E+00", "40.0", 256
				}
				return usual(i)
			})
		},
		"a batch that grows": func(l *life) {
			l.iterate(0, 160, func(i int) (float64, string, string, int) {
				ms, loss, grad, _ := usual(i)
				batch := 256 << (i / 40)
				return ms * float64(batch) / 256, loss, grad, batch
			})
		},
		"a restart from the last checkpoint": func(l *life) {
			l.iterate(0, 70, usual)
			l.say("using world size: 16, data-parallel size: 16, tensor-model-parallel size: 1, pipeline-model-parallel size: 1")
			l.say(" loading distributed checkpoint from /ckpt/gpt at iteration 50")
			l.pause(9 * time.Minute)
			l.iterate(50, 110, usual)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			lives(l)
			require.Empty(t, l.told)
		})
	}
}

// TestEachFaultRingsOnce has a fault of each kind, which lasts for many looks, and the
// node that the alarm must name.
func TestEachFaultRingsOnce(t *testing.T) {
	for id, c := range map[string]struct {
		node  string
		lives func(l *life)
	}{
		"hang": {"gpu[01-02]", func(l *life) {
			l.iterate(0, 60, usual)
			l.pause(2 * time.Hour)
		}},
		"not_finite": {"gpu[01-02]", func(l *life) {
			l.iterate(0, 90, func(i int) (float64, string, string, int) {
				if i > 50 {
					return 4000, "NAN", "nan", 256
				}
				return usual(i)
			})
		}},
		"loss_spike": {"gpu[01-02]", func(l *life) {
			l.iterate(0, 140, func(i int) (float64, string, string, int) {
				if i > 60 {
					return 4000, "7.800000E+00", "180.0", 256
				}
				return usual(i)
			})
		}},
		"slower": {"gpu[01-02]", func(l *life) {
			l.iterate(0, 140, func(i int) (float64, string, string, int) {
				ms, loss, grad, batch := usual(i)
				if i > 60 {
					ms *= 1.6
				}
				return ms, loss, grad, batch
			})
		}},
		"straggler": {"gpu02", func(l *life) {
			l.iterate(0, 40, usual)
			for k := range 8 {
				l.say("0: INFO:megatron.core.utils:[2026-06-11 10:10:00] | MnRtt/Rnk: 1446.49ms/3 | MxRtt/Rnk: 1570.32ms/11 | MnEtpt/Rnk: 300.10TF/11 | MxEtpt/Rnk: 602.83TF/3")
				l.iterate(40+10*k, 50+10*k, usual)
			}
		}},
		"slow_start": {"gpu[01-02]", func(l *life) {
			// The specification says which GPU this is. 400 TFLOP/s is slow for a B200.
			l.submitted(`{"name":"gpt","gpu":"b200","worktree":"/w"}`)
			l.iterate(0, 60, usual)
		}},
	} {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			c.lives(l)
			require.Len(t, l.told, 1, "%+v", l.told)
			require.Equal(t, id, l.told[0].ID)
			require.Equal(t, c.node, l.told[0].Node)
			for _, tongue := range []lang.Lang{lang.EN, lang.ZH} {
				require.Contains(t, l.told[0].Says(tongue), c.node)
				require.NotEmpty(t, l.told[0].View(tongue).Title)
			}
			require.NotEmpty(t, l.told[0].Fix.ZH)
		})
	}
}

// TestAnAlarmIsToldAgainWhenItCameBack has a job that hangs, recovers, and hangs again.
func TestAnAlarmIsToldAgainWhenItCameBack(t *testing.T) {
	l := newLife(t)
	l.iterate(0, 60, usual)
	l.pause(40 * time.Minute)
	require.Len(t, l.told, 1)
	l.iterate(60, 180, usual)
	l.pause(3 * time.Hour)
	require.Len(t, l.told, 2)
	require.Equal(t, "hang", l.told[1].ID)
	require.Contains(t, l.told[1].What.EN, "the last one was 180")
}

// An alarm counts as gone after ten looks in a row that did not see it.
func TestWhenAnAlarmIsToldAgain(t *testing.T) {
	for absent, again := range map[int]bool{1: false, quietPolls - 1: false, quietPolls: true} {
		told := reportedAlarms{}
		seen := []joblogs.Alarm{{ID: "hang"}}
		fresh, changed := told.update(seen)
		require.Equal(t, seen, fresh)
		require.True(t, changed)
		fresh, changed = told.update(seen)
		require.Empty(t, fresh)
		require.False(t, changed, "nothing to store")
		for range absent {
			told.update(nil)
		}
		fresh, _ = told.update(seen)
		require.Equal(t, again, len(fresh) == 1, "absent for %d looks", absent)
	}
}

// TestARunningJobIsPatrolled has a job on the embedded back end whose loss becomes NaN
// while it runs.
func TestARunningJobIsPatrolled(t *testing.T) {
	y := followCluster(t, `for i in 1 2 3 4 5 6 7 8 9; do
  echo " [2026-06-11 10:00:0$i.000000] iteration        $i/     100 | consumed samples: 64 | elapsed time per iteration (ms): 1000.0 | lm loss: NAN | grad norm: nan |"
done
exec sleep 60
`)
	id := y.submit(job.Spec{})
	n := y.until("the alarm", func(n News) bool { return n.Job.ID == id && len(n.Alarms) > 0 })
	require.Equal(t, "not_finite", n.Alarms[0].ID)
	require.NotEmpty(t, n.Alarms[0].Node)
	for range 10 {
		y.f.reportAlarms(t.Context(), y.st, n.Job)
	}
	y.mu.Lock()
	defer y.mu.Unlock()
	rung := 0
	for _, n := range y.news {
		rung += len(n.Alarms)
	}
	require.Equal(t, 1, rung, "eleven looks or more, told once")
}
