package job_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/job"
)

func TestDiffSaysWhatChangedInARun(t *testing.T) {
	a := twoNodes("--lr", "3e-4", "--bf16", "--data-path", "1", "/a")
	a.Env = map[string]string{"A": "1", "B": "2"}
	b := twoNodes("--bf16", "--data-path", "1", "/b c", "--lr=1e-4", "--fp8")
	b.Nodes, b.Time, b.Env, b.Guards = new(4), "60", map[string]string{"B": "3", "C": ""}, new(false)
	b.Container = job.Container{Runtime: job.Pyxis, Image: "/i.sqsh"}
	require.Equal(t, []job.Change{
		{"nodes", "2", "4"},
		{"time", "", "60"},
		{"args.--data-path", "1 /a", "1 '/b c'"},
		{"args.--fp8", "", "given"},
		{"args.--lr", "3e-4", "1e-4"},
		{"env.A", "1", ""},
		{"env.B", "2", "3"},
		{"env.C", "", ""},
		{"container.runtime", "", "pyxis"},
		{"container.image", "", "/i.sqsh"},
		{"guards", "", "false"},
	}, job.Diff(a, b))
	require.Empty(t, job.Diff(a, a))
}

func TestDiffOfScriptsShowsTheLinesAround(t *testing.T) {
	require.Equal(t, "…\n c\n d\n-e\n+E\n f\n g\n…\n", job.DiffText("a\nb\nc\nd\ne\nf\ng\nh\n", "a\nb\nc\nd\nE\nf\ng\nh\n"))
	require.Equal(t, "+x\n a\n", job.DiffText("a\n", "x\na\n"))
	require.Empty(t, job.DiffText("a\n", "a\n"))
	one, err := job.Render(twoNodes("--lr", "1e-4"), job.Options{})
	require.NoError(t, err)
	two, err := job.Render(twoNodes("--lr", "3e-4"), job.Options{})
	require.NoError(t, err)
	said := job.DiffText(one.Text, two.Text)
	require.Contains(t, said, "-  --lr 1e-4\n+  --lr 3e-4\n")
	require.NotContains(t, said, "#|", "the specification that a script carries is compared by itself")
}
