package soak

import (
	"database/sql"
	"fmt"
	"maps"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
)

// settle records how long it took until everything was delivered.
func (r *run) settle(since time.Time) { r.settled = time.Since(since) }

// missing lists what has not been delivered yet.
func (r *run) missing() (list []string) {
	r.slurm.mu.Lock()
	jobs := slices.Clone(r.slurm.jobs)
	r.slurm.mu.Unlock()
	r.ledger.mu.Lock()
	defer r.ledger.mu.Unlock()
	byName := map[string]int{}
	for i, j := range jobs {
		byName[j.name]++
		id := strconv.Itoa(j.id)
		if i < r.jobs {
			if r.ledger.ends[channelOf(i%owners)+" "+id] == 0 {
				list = append(list, fmt.Sprintf("the end of job %s in %s", id, channelOf(i%owners)))
			}
		} else if r.ledger.heard[id] == 0 {
			list = append(list, fmt.Sprintf("the end of job %s (%s) at the webhook", id, j.name))
		}
	}
	for channel, c := range r.ledger.commands {
		if !c.acked {
			continue
		}
		if c.answers+c.again == 0 {
			list = append(list, fmt.Sprintf("the answer to %q in %s of %s", c.words, channel, c.at.Format(time.TimeOnly)))
		} else if c.submits != "" && c.refused == "" && c.job != "" && r.ledger.ends[channel+" "+c.job] == 0 {
			list = append(list, fmt.Sprintf("the end of job %s in %s", c.job, channel))
		}
		if c.submits != "" && c.refused == "" && byName[c.submits] == 0 {
			list = append(list, fmt.Sprintf("the job of %q", c.words))
		}
	}
	for _, w := range r.wishes {
		if w.job == "" {
			list = append(list, fmt.Sprintf("the answer to submit %s: last %.300q", w.name, w.last))
		}
	}
	return list
}

// doubled lists what was delivered or done more than once.
func (r *run) doubled() (list []string) {
	r.slurm.mu.Lock()
	jobs := slices.Clone(r.slurm.jobs)
	r.slurm.mu.Unlock()
	byName := map[string][]int{}
	for _, j := range jobs {
		byName[j.name] = append(byName[j.name], j.id)
	}
	for name, ids := range byName {
		if len(ids) > 1 {
			list = append(list, fmt.Sprintf("%s was submitted as %v", name, ids))
		}
	}
	r.ledger.mu.Lock()
	defer r.ledger.mu.Unlock()
	for what, counts := range map[string]map[string]int{"card": r.ledger.cards, "end": r.ledger.ends, "webhook's end": r.ledger.heard} {
		for key, n := range counts {
			if n > 1 {
				list = append(list, fmt.Sprintf("the %s of %s: %d times %s", what, key, n, r.ledger.keysOf(key)))
			}
		}
	}
	for channel, c := range r.ledger.commands {
		if c.answers > 1 {
			list = append(list, fmt.Sprintf("the answer to %q in %s: %d times", c.words, channel, c.answers))
		}
	}
	return list
}

// quantile is a quantile of the durations, or 0 if there are none.
func quantile(of []time.Duration, q float64) time.Duration {
	if len(of) == 0 {
		return 0
	}
	slices.Sort(of)
	return of[max(0, int(math.Ceil(q*float64(len(of))))-1)].Round(time.Millisecond)
}

func median(of []float64) float64 {
	if len(of) == 0 {
		return 0
	}
	slices.Sort(of)
	return of[len(of)/2]
}

// thirds are the medians of the first and the last third of the measured time.
func (r *run) thirds(value func(sample) float64) (first, last float64) {
	var list []sample
	for _, s := range r.samples {
		if r.measured(s.at) {
			list = append(list, s)
		}
	}
	values := func(some []sample) (v []float64) {
		for _, s := range some {
			v = append(v, value(s))
		}
		return v
	}
	third := len(list) / 3
	return median(values(list[:third])), median(values(list[len(list)-third:]))
}

// verify writes the report and fails the test if something was lost, duplicated or
// leaked.
func (r *run) verify(t *testing.T) {
	lost, twice := r.missing(), r.doubled()
	text := r.describe(t, len(lost), len(twice))
	t.Log("\n" + text)
	if *report != "" {
		if err := os.WriteFile(*report, []byte(text), 0o644); err != nil {
			t.Error(err)
		}
	}
	for _, list := range [][]string{lost, twice} {
		slices.Sort(list)
	}
	if len(lost) > 0 {
		t.Errorf("lost: %d\n%s", len(lost), strings.Join(lost[:min(len(lost), 20)], "\n"))
	}
	if len(twice) > 0 {
		t.Errorf("doubled: %d\n%s", len(twice), strings.Join(twice[:min(len(twice), 20)], "\n"))
	}
	if first, last := r.thirds(func(s sample) float64 { return s.rss }); last > first*1.25+64 {
		t.Errorf("memory grows: %.0f MiB in the first third, %.0f MiB in the last", first, last)
	}
	// A busy machine keeps some dozen requests under way at a time; a goroutine that each
	// left would be hundreds.
	if first, last := r.thirds(func(s sample) float64 { return s.goroutines }); last > first*1.25+100 {
		t.Errorf("goroutines grow: %.0f in the first third, %.0f in the last", first, last)
	}
	if t.Failed() && *keep == "" {
		raw, _ := os.ReadFile(r.server.complain.Name())
		t.Logf("serve's last words:\n%s", raw[max(0, len(raw)-4000):])
	}
}

// describe is the report as a Markdown table.
func (r *run) describe(t *testing.T, lost, twice int) string {
	var acks, answers, calmAcks, calmAnswers []time.Duration
	kinds := map[string]int{}
	typed, refused, again, told := 0, 0, 0, 0
	r.ledger.mu.Lock()
	for _, c := range r.ledger.commands {
		kinds[c.kind]++
		typed++
		again += c.again
		if !c.acked {
			refused++
			continue
		}
		acks, answers = append(acks, c.ack), append(answers, c.answered)
		if c.calm {
			calmAcks, calmAnswers = append(calmAcks, c.ack), append(calmAnswers, c.answered)
		}
	}
	for _, n := range r.ledger.ends {
		told += n
	}
	cards, heard, hookAgain := len(r.ledger.cards), len(r.ledger.heard), r.ledger.again
	r.ledger.mu.Unlock()
	var b strings.Builder
	row := func(what, format string, args ...any) {
		fmt.Fprintf(&b, "| %s | %s |\n", what, fmt.Sprintf(format, args...))
	}
	b.WriteString("| what | seen |\n|---|---|\n")
	row("machine", "%d cores, load %s at the end, %s", runtime.NumCPU(), load(), time.Now().UTC().Format(time.DateOnly))
	row("length", "%s of load, %s more until nothing was owed", r.lasts, r.settled.Round(time.Second))
	row("jobs", "%d in the queue at the start, %d submitted meanwhile", r.jobs, len(r.slurm.jobs)-r.jobs)
	row("commands", "%d, %.0f a minute, of which %d lists; %d not acknowledged (serve or its database was away), which Slack tells the person", typed,
		float64(typed)/r.lasts.Minutes(), kinds["list"], refused)
	row("agents", "10 sessions over MCP, %d calls, %d submissions, each repeated with its key until answered", r.agentCalls.Load(), len(r.wishes))
	row("page", "20 viewers, %d changes by server-sent events, %d streams cut", r.streamed.Load(), r.cuts.Load())
	var list []string
	for _, name := range slices.Sorted(maps.Keys(r.counts)) {
		list = append(list, fmt.Sprintf("%s: %d", name, r.counts[name]))
	}
	row("faults", "%s", strings.Join(list, "; "))
	row("lives of serve", "%d", r.server.lives)
	row("told", "%d cards, %d ends in Slack, %d ends at the webhook", cards, told, heard)
	row("lost", "%d", lost)
	row("doubled", "%d (%d private answers and %d webhook calls came again, and said so)", twice, again, hookAgain)
	row("acknowledgement", "p50 %s, p99 %s; without a fault on: p50 %s, p99 %s", quantile(acks, .5), quantile(acks, .99), quantile(calmAcks, .5), quantile(calmAcks, .99))
	row("answer", "p50 %s, p99 %s; without a fault on: p50 %s, p99 %s", quantile(answers, .5), quantile(answers, .99), quantile(calmAnswers, .5), quantile(calmAnswers, .99))
	first, last := r.thirds(func(s sample) float64 { return s.rss })
	row("memory (RSS)", "%.0f MiB in the first third of one life, %.0f MiB in the last; may grow by a quarter and 64 MiB", first, last)
	first, last = r.thirds(func(s sample) float64 { return s.heap })
	row("heap", "%.0f MiB, then %.0f MiB", first, last)
	first, last = r.thirds(func(s sample) float64 { return s.goroutines })
	row("goroutines", "%.0f, then %.0f; may grow by a quarter and 100", first, last)
	r.slurm.mu.Lock()
	list = nil
	for _, name := range slices.Sorted(maps.Keys(r.slurm.asked)) {
		list = append(list, fmt.Sprintf("%s %d", name, r.slurm.asked[name]))
	}
	r.slurm.mu.Unlock()
	row("questions to Slurm", "%s", strings.Join(list, ", "))
	row("rows kept", "%s", r.rows(t))
	return b.String()
}

// rows counts the rows in the store.
func (r *run) rows(t *testing.T) string {
	db, err := sql.Open("pgx", r.database.URL)
	if err != nil {
		t.Error(err)
		return ""
	}
	defer db.Close()
	var list []string
	for _, table := range []string{"submissions", "audit", "slack_inbox", "slack_outbox", "slack_refs", "slack_docs", "feedback", "leases"} {
		var n, size int64
		if err := db.QueryRow(fmt.Sprintf("SELECT COUNT(*), pg_total_relation_size('%[1]s') FROM %[1]s", table)).Scan(&n, &size); err == nil {
			list = append(list, fmt.Sprintf("%s %d (%.1f MiB)", table, n, float64(size)/(1<<20)))
		}
	}
	return strings.Join(list, ", ")
}

func load() string {
	raw, _ := os.ReadFile("/proc/loadavg")
	return strings.Join(strings.Fields(string(raw))[:min(3, len(strings.Fields(string(raw))))], " ")
}
