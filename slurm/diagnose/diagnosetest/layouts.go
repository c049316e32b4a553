package diagnosetest

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Layouts write a run's lines into files as different launchers do.
var Layouts = map[string]func(t *testing.T, r *Run, dir string){
	"label": layout(func(r *Run, l Line) (string, string) {
		if l.Rank < 0 || l.Rank >= Agent {
			return "slurm-77.out", l.Text
		}
		return "slurm-77.out", fmt.Sprintf("%2d: %s", l.Rank, l.Text)
	}),
	"tee": layout(func(r *Run, l Line) (string, string) {
		switch {
		case l.Rank < 0:
			return "slurm-77.out", l.Text
		case l.Rank >= Agent:
			return fmt.Sprintf("logs/77/node%02d-%s.log", l.Rank-Agent, nodeName(l.Rank-Agent)), l.Text
		}
		n := l.Rank / r.PerNode
		return fmt.Sprintf("logs/77/node%02d-%s.log", n, nodeName(n)), fmt.Sprintf("[default%d]:%s", l.Rank%r.PerNode, l.Text)
	}),
	"pernode": layout(func(r *Run, l Line) (string, string) {
		switch {
		case l.Rank < 0:
			return "train-77.out", l.Text
		case l.Rank >= Agent:
			return fmt.Sprintf("train-77-%s.err", nodeName(l.Rank-Agent)), l.Text
		}
		end := "err"
		if strings.Contains(l.Text, "iteration ") || strings.Contains(l.Text, " ....") {
			end = "out"
		}
		return fmt.Sprintf("train-77-%s.%s", r.Node(l.Rank), end), l.Text
	}),
	"tdir": layout(func(r *Run, l Line) (string, string) {
		switch {
		case l.Rank < 0:
			return "slurm-77.out", l.Text
		case l.Rank >= Agent:
			return fmt.Sprintf("logs/%s/agent.log", nodeName(l.Rank-Agent)), l.Text
		}
		return fmt.Sprintf("logs/%s/none_ab12cd34/attempt_0/%d/stderr.log", r.Node(l.Rank), l.Rank%r.PerNode), l.Text
	}),
	"ranks": layout(func(r *Run, l Line) (string, string) {
		if l.Rank < 0 || l.Rank >= Agent {
			return "slurm-77.out", l.Text
		}
		return fmt.Sprintf("rank%04d.err", l.Rank), l.Text
	}),
	"suffix": layout(func(r *Run, l Line) (string, string) {
		if l.Rank < 0 || l.Rank >= Agent {
			return "slurm-77.out", l.Text
		}
		return fmt.Sprintf("gpt_%s_r%d.log", r.Node(l.Rank), l.Rank), l.Text
	}),
}

// layout returns the function that writes a run's lines into the files that place names.
func layout(place func(r *Run, l Line) (file, text string)) func(t *testing.T, r *Run, dir string) {
	return func(t *testing.T, r *Run, dir string) {
		t.Helper()
		write(t, r, dir, place)
	}
}

func write(t *testing.T, r *Run, dir string, place func(r *Run, l Line) (file, text string)) {
	t.Helper()
	lines := append([]Line(nil), r.Lines...)
	sort.SliceStable(lines, func(a, b int) bool { return lines[a].At < lines[b].At })
	content := map[string]*strings.Builder{}
	for _, l := range lines {
		file, text := place(r, l)
		if content[file] == nil {
			content[file] = &strings.Builder{}
		}
		content[file].WriteString(text + "\n")
	}
	for file, b := range content {
		p := filepath.Join(dir, file)
		require.NoError(t, os.MkdirAll(filepath.Dir(p), 0o755))
		require.NoError(t, os.WriteFile(p, []byte(b.String()), 0o644))
	}
}
