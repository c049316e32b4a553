package card_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/metrics"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// cards are jobs in the states that a card can show.
func cards() map[string]card.Card {
	at := func(hour int) *time.Time {
		t := time.Date(2026, 3, 2, hour, 0, 0, 0, time.UTC)
		return &t
	}
	number := func(v float64) *float64 { return &v }
	limit, exit := int64(4*3600), "1:0"
	job := slurm.Job{ID: "77", Name: "gpt", User: "ada", Account: "lab", Cluster: "prod", Partition: "gpu", NumNodes: 2, GPUs: 16, SubmittedAt: at(6), TimeLimitS: &limit}
	in := func(s slurm.State) slurm.Job { j := job; j.State = s; return j }
	waits, runs, failed, done := in(slurm.Pending), in(slurm.Running), in(slurm.Failed), in(slurm.Completed)
	waits.Reason, waits.EstStart = "Resources", at(9)
	for _, j := range []*slurm.Job{&runs, &failed, &done} {
		j.Nodes, j.StartedAt, j.ElapsedS = []string{"gpu1", "gpu2"}, at(7), 3600
	}
	failed.EndedAt, failed.ExitCode, done.EndedAt = at(8), &exit, at(8)
	curve := []metrics.Point{{N: 1, V: 8}, {N: 400, V: 4}, {N: 800, V: 3}, {N: 1200, V: 2.5}}
	trains := card.News{
		Job: runs, Iteration: 1200, Iterations: 5000, Loss: (*card.Number)(number(2.5)), TFLOPs: number(412.3), SecondsEach: 1.25, MFU: number(41.7), ETA: 90 * time.Minute,
		Curve: curve, LineAt: *at(8), Checkpoint: 1000, CheckpointAt: *at(8),
	}
	cause := view.Doc{Title: "GPU out of memory", Sections: []view.Section{{Text: "rank 11 on gpu2"}}}
	all := map[string]card.Card{
		"a waits":          {Team: "T1", User: "U1", News: card.News{Job: waits, Position: 3, InLine: 1200}},
		"b waits unknown":  {Team: "T1", News: card.News{Job: in(slurm.Pending)}},
		"c trains":         {Team: "T1", User: "U1", Approver: "U9", News: trains},
		"d runs":           {Team: "T1", News: card.News{Job: runs}},
		"e failed":         {Team: "T1", User: "U1", News: card.News{Job: failed, Why: "GPU out of memory, rank 11 on gpu2", Cause: &cause, Class: "cuda_oom", Exclude: []string{"gpu2"}, Iteration: 1200}},
		"f failed, taken":  {Team: "T1", User: "U1", Taken: "U2", TakenAt: *at(9), News: card.News{Job: failed}},
		"g completed":      {Team: "T1", User: "U1", News: card.News{Job: done, Iteration: 5000, Iterations: 5000, Loss: (*card.Number)(number(2.1)), Curve: curve}},
		"h name in markup": {News: card.News{Job: slurm.Job{ID: "9", Name: "a<b>&*c*", State: slurm.Running, User: "ada"}}},
	}
	for name, k := range all {
		k.Places = []card.Place{{Team: "T1", Channel: "C1"}}
		all[name] = k
	}
	return all
}

// What a card says in each state is pinned: a change of any word shows in review.
func TestACardSaysWhatOneAsksOfAJobInItsState(t *testing.T) {
	var b strings.Builder
	all := cards()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for _, l := range []lang.Lang{lang.EN, lang.ZH} {
			for _, edit := range []bool{false, true} {
				text, blocks := card.Draw(all[name], l, edit)
				var list []json.RawMessage
				require.NoError(t, json.Unmarshal(blocks, &list), name)
				fmt.Fprintf(&b, "=== %s, %s, edit %t\n%s\n%s\n", name, l, edit, text, bytes.Join(rawLines(list), []byte("\n")))
			}
		}
	}
	const golden = "testdata/cards.golden"
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(golden, []byte(b.String()), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, strings.Split(string(want), "\n"), strings.Split(b.String(), "\n"), "run go test ./bot/card -update and read the difference")
}

func rawLines(list []json.RawMessage) (lines [][]byte) {
	for _, line := range list {
		lines = append(lines, line)
	}
	return lines
}

// A card names whoever cancelled a job only if the job ended soon after they did so.
func TestACardNamesWhoCancelledTheJob(t *testing.T) {
	end := time.Date(2026, 6, 11, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		at    time.Time
		named bool
	}{
		"a minute before":       {end.Add(-time.Minute), true},
		"hours before":          {end.Add(-3 * time.Hour), false},
		"in an earlier version": {time.Time{}, false}, // which stored whoever changed it last
	} {
		k := card.Card{User: "U1", Acted: "U6", ActedAt: c.at, EndedAt: end, News: card.News{Job: slurm.Job{ID: "4", Name: "gpt", State: slurm.Cancelled}}}
		_, blocks := card.Draw(k, lang.EN, true)
		require.Equal(t, c.named, strings.Contains(string(blocks), "cancelled by"), name)
	}
}

// A retry without hundreds of nodes has its button, which names them as Slurm does.
func TestARetryWithoutVeryManyNodesHasItsButton(t *testing.T) {
	t.Parallel()
	var nodes []string
	for i := range 600 {
		nodes = append(nodes, fmt.Sprintf("gpu-%04d", i))
	}
	k := card.Card{News: card.News{Job: slurm.Job{ID: "4711", Cluster: "yard", State: slurm.NodeFail}, Exclude: nodes}}
	drawn, err := json.Marshal(card.Buttons(k, lang.EN))
	require.NoError(t, err)
	require.Contains(t, string(drawn), `"value":"yard/4711 gpu-[0000-0599]"`)
}
