package slurm

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// recorded is Slurm 22.05's answer to alice, with limits on research, on alice in
// research and on the QOS short, while a job with 8 GPUs and one with 4 ran.
func recorded(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("testdata/assoc_mgr.txt")
	require.NoError(t, err)
	return string(b)
}

func TestLimitsSayWhoseTheyAreAndHowMuchIsTaken(t *testing.T) {
	all := ParseLimits(recorded(t), "alice", "", "short")
	require.ElementsMatch(t, []Limit{
		{"alice in research", "MaxJobs", "", 3, 2},
		{"alice in research", "MaxSubmitJobs", "", 4, 2},
		{"alice in research", "MaxWallPJ", "", 120, 0},
		{"alice in research", "MaxTRESPJ", "gres/gpu", 16, 0},
		{"account research", "GrpJobs", "", 5, 2},
		{"account research", "GrpTRES", "gres/gpu", 24, 12},
		{"account research", "GrpTRESMins", "gres/gpu", 6000, 0},
		{"QOS short", "MaxWallPJ", "", 30, 0},
		{"alice under QOS short", "MaxTRESPU", "gres/gpu", 8, 4},
	}, all, "research is her default account")
	require.Len(t, ParseLimits(recorded(t), "alice", "infra", "normal"), 0, "another account has none")
	require.Len(t, ParseLimits(recorded(t), "bob", "research", "normal"), 3, "what binds the account binds everybody in it")
	require.Empty(t, ParseLimits("", "alice", "", ""))
	require.Empty(t, ParseLimits("GrpJobs=5(2)\nQOS=short(4) GrpJobs=x", "alice", "research", "short"))
}

func TestARequestIsHeldAgainstEachLimit(t *testing.T) {
	ask := func(gpus, minutes int64) ResourceRequest {
		return ResourceRequest{TRES: map[string]int64{"gres/gpu": gpus, "node": gpus / 8}, Minutes: minutes}
	}
	for _, c := range []struct {
		name  string
		ask   ResourceRequest
		waits []string // names of limits
		never []string
	}{
		{"fits", ask(4, 20), nil, nil},
		{"more than is left of the QOS", ask(8, 20), []string{"MaxTRESPU"}, nil},
		{"more than is left of the account", ask(16, 20), []string{"GrpTRES"}, []string{"MaxTRESPU"}},
		{"more than a job may have", ask(32, 20), nil, []string{"MaxTRESPU", "MaxTRESPJ", "GrpTRES"}},
		{"too long for the QOS", ask(4, 60), nil, []string{"MaxWallPJ"}},
		{"more than the budget", ask(4, 1501), nil, []string{"MaxWallPJ", "MaxWallPJ", "GrpTRESMins"}},
	} {
		var waits, never []string
		for _, l := range ParseLimits(recorded(t), "alice", "research", "short") {
			if b, ok := l.Breach(c.ask); ok && b.Never {
				never = append(never, l.Name)
			} else if ok {
				waits = append(waits, l.Name)
			}
		}
		require.ElementsMatch(t, c.waits, waits, c.name)
		require.ElementsMatch(t, c.never, never, c.name)
	}
	b, broken := Limit{Of: "alice", Name: "MaxSubmitJobs", Max: 4, Used: 4}.Breach(ResourceRequest{})
	require.True(t, broken && b.Never, "sbatch itself refuses one job more")
	_, broken = Limit{Of: "alice", Name: "MaxTRESPN", TRES: "gres/gpu", Max: 8}.Breach(ResourceRequest{TRES: map[string]int64{"gres/gpu": 16}})
	require.False(t, broken, "on how many nodes is not known")
	b, broken = Limit{Of: "alice", Name: "MaxJobs", Max: 4, Used: 4}.Breach(ResourceRequest{})
	require.True(t, broken && !b.Never, "one job more waits")
}

func TestWhatIsLeftOfALimit(t *testing.T) {
	for used, left := range map[int64]int64{0: 8, 6: 2, 8: 0, 10: 0} {
		require.Equal(t, left, Limit{Max: 8, Used: used}.Left(), "a limit that was lowered meanwhile leaves nothing")
	}
}

func FuzzParseLimits(f *testing.F) {
	b, err := os.ReadFile("testdata/assoc_mgr.txt")
	if err != nil {
		f.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, out string) {
		for _, l := range ParseLimits(out, "alice", "research", "short") {
			if l.Left() < 0 || l.Of == "" {
				t.Fatalf("%+v", l)
			}
		}
	})
}
