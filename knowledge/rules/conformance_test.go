package rules

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
)

// A conformanceCase is a launch with Megatron's own verdict.
type conformanceCase struct {
	ID      string            `json:"id"`
	Entry   string            `json:"entry"`
	Argv    []string          `json:"argv"`
	World   int               `json:"world_size"`
	Arch    int               `json:"arch"`
	Env     map[string]string `json:"env"`
	OK      bool              `json:"ok"`
	Derived map[string]any    `json:"derived"`
	Stage   string            `json:"stage"`
	Error   string            `json:"error"`
	Where   string            `json:"where"`
	Class   string            `json:"class"`
	// Megatron is the release whose code gave the verdict.
	Megatron string `json:"megatron"`
}

func (c conformanceCase) run() megatron.Run {
	match, _ := megatron.ParseRelease(c.Megatron)
	return megatron.Run{Entry: c.Entry, Argv: c.Argv, WorldSize: c.World, Arch: c.Arch, Env: c.Env, Release: match.Release}
}

// configurationsFile holds configurations with verdicts of Megatron's own code. They
// are chosen evenly over its checks and over the model configurations.
const configurationsFile = "testdata/configurations.jsonl"

func configurations(tb testing.TB) []conformanceCase {
	tb.Helper()
	file, err := os.Open(configurationsFile)
	require.NoError(tb, err)
	defer file.Close()
	var cases []conformanceCase
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var c conformanceCase
		require.NoError(tb, json.Unmarshal(lines.Bytes(), &c))
		cases = append(cases, c)
	}
	require.NoError(tb, lines.Err())
	return cases
}

// TestVerdictsArePinned compares the verdict on each configuration with the golden
// file, which has one line for each case. -update rewrites the file.
func TestVerdictsArePinned(t *testing.T) {
	var b strings.Builder
	for _, c := range configurations(t) {
		b.WriteString(pinned(c, Check(c.run())) + "\n")
	}
	const golden = "testdata/configurations.golden"
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(b.String()), 0o644))
	}
	raw, err := os.ReadFile(golden)
	require.NoError(t, err)
	want := strings.Split(string(raw), "\n")
	for i, got := range strings.Split(b.String(), "\n") {
		require.Less(t, i, len(want), "a line too many: %s", got)
		assert.Equal(t, want[i], got)
	}
	require.Len(t, strings.Split(b.String(), "\n"), len(want))
}

// pinned formats a verdict as one line: whether Megatron starts, whether Megatron
// agrees, the recommended CUDA_DEVICE_MAX_CONNECTIONS, and the broken rules with
// their sources.
func pinned(c conformanceCase, v Verdict) string {
	said := "starts"
	if !v.OK {
		said = "refused"
	}
	if v.OK != c.OK {
		said += ", wrongly"
	}
	var problems []string
	for _, p := range v.Problems {
		one := fmt.Sprintf("%s %s", p.Severity, p.Rule)
		if p.Follows != "" {
			one += " after " + p.Follows
		}
		problems = append(problems, one+" at "+p.Source)
	}
	return fmt.Sprintf("%s: %s; connections %v; %s", c.ID, said, v.Derived["cuda_device_max_connections"], strings.Join(problems, "; "))
}

// brokenRules returns the rules of the problems with severity error.
func brokenRules(v Verdict) []string {
	var ids []string
	for _, p := range v.Problems {
		if p.Severity == Error {
			ids = append(ids, p.Rule)
		}
	}
	return ids
}

// TestAgreesWithMegatron scores the rules' verdicts against those of Megatron's own
// code, and prints the score by topic.
func TestAgreesWithMegatron(t *testing.T) {
	var s score
	for _, c := range configurations(t) {
		s.add(c, Check(c.run()))
	}
	s.print(t)
	require.GreaterOrEqual(t, s.share(s.agree, s.all), 0.995, "ok or refused as Megatron says")
	require.GreaterOrEqual(t, s.share(s.located, s.refused), 0.95, "refused for Megatron's own reason")
	require.Zero(t, s.derivedWrong, "derived values as Megatron derives them")
}

type score struct {
	all, agree, refused, located, first, derivedWrong int
	wrong                                             []string
	topics                                            map[string]*[2]int
}

func (s *score) share(part, whole int) float64 { return float64(part) / float64(max(whole, 1)) }

func (s *score) add(c conformanceCase, v Verdict) {
	s.all++
	if s.topics == nil {
		s.topics = map[string]*[2]int{}
	}
	topic := topicOf(c)
	if s.topics[topic] == nil {
		s.topics[topic] = &[2]int{}
	}
	s.topics[topic][1]++
	if v.OK != c.OK {
		s.wrong = append(s.wrong, fmt.Sprintf("%s %s ok=%v, Megatron says %v %s %s; broken %v", c.ID, c.Entry, v.OK, c.OK, c.Class, c.Error, brokenRules(v)))
	} else {
		s.agree++
		s.topics[topic][0]++
	}
	if c.OK {
		for name, want := range c.Derived {
			if got := fmt.Sprint(plainNumber(v.Derived[name])); got != fmt.Sprint(plainNumber(want)) {
				s.derivedWrong++
				s.wrong = append(s.wrong, fmt.Sprintf("%s derived %s = %s, Megatron says %v", c.ID, name, got, want))
			}
		}
		return
	}
	s.refused++
	at := slices.IndexFunc(v.Problems, func(p Problem) bool { return located(c, p) })
	if at < 0 {
		var sources []string
		for _, p := range v.Problems {
			sources = append(sources, p.Source)
		}
		s.wrong = append(s.wrong, fmt.Sprintf("%s not located: %s %s; reported %v", c.ID, c.Where, c.Error, sources))
		return
	}
	s.located++
	if at == 0 {
		s.first++
	}
}

// topicOf returns the topic of the rule at which Megatron stopped.
func topicOf(c conformanceCase) string {
	if c.OK {
		return "accepted"
	}
	for _, r := range Table() {
		if r.Source == c.Where {
			return r.Topic
		}
	}
	return "command line"
}

// located reports whether Megatron stopped at this problem. An error of Megatron's
// parser has no source; the problem must then name the same flag.
func located(c conformanceCase, p Problem) bool {
	if c.Stage != "argparse" {
		return p.Source == c.Where
	}
	return strings.Contains(c.Error, p.Field) || slices.Contains(strings.Fields(c.Error), p.Field) || p.Rule == "stray-value"
}

func plainNumber(v any) any {
	switch v := v.(type) {
	case float64:
		if v == float64(int(v)) {
			return int(v)
		}
	case nil:
		return "null"
	}
	return v
}

func (s *score) print(t testing.TB) {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(s.topics)) {
		n := s.topics[name]
		fmt.Fprintf(&b, "%-30s %5d of %5d agree (%.2f %%)\n", name, n[0], n[1], 100*s.share(n[0], n[1]))
	}
	fmt.Fprintf(&b, "%-30s %5d of %5d agree (%.2f %%)\n", "all", s.agree, s.all, 100*s.share(s.agree, s.all))
	fmt.Fprintf(&b, "%-30s %5d of %5d refusals name Megatron's check (%.2f %%), %d first\n", "located", s.located, s.refused, 100*s.share(s.located, s.refused), s.first)
	fmt.Fprintf(&b, "%-30s %5d\n", "derived values wrong", s.derivedWrong)
	t.Log("\n" + b.String())
	for _, w := range s.wrong[:min(len(s.wrong), 60)] {
		t.Log(w)
	}
}
