package job_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/job"
)

func TestCommandsForImages(t *testing.T) {
	for name, in := range map[string]job.Image{
		"dev": {},
		"lts": {Variant: "lts", Base: "nvcr.io/nvidia/pytorch:24.01-py3\n", Worktree: "/shared/a b", Remote: "ssh://git@gitlab.example.com:12051/adlr/megatron-lm.git", NoCache: true},
	} {
		steps, err := job.Images(in)
		require.NoError(t, err)
		var b strings.Builder
		for _, s := range steps {
			require.NotEmpty(t, s.Does.ZH)
			b.WriteString("# " + s.Does.EN + "\n" + s.Command + "\n")
		}
		compareGolden(t, "testdata/shell/image-"+name+".txt", b.String())
		requireClean(t, "#!/bin/bash\n"+b.String())
	}
}

func TestTheRegistryIsTheRemotesHost(t *testing.T) {
	for remote, host := range map[string]string{
		"git@gitlab.example.com:group/p.git":              "gitlab.example.com",
		"ssh://git@gitlab.example.com:12051/group/p.git":  "gitlab.example.com",
		"https://user:pw@gitlab.example.com:8443/g/p.git": "gitlab.example.com",
		"gitlab.example.com:group/p.git":                  "gitlab.example.com",
		"/srv/git/p.git":                                  "",
		"https://$(touch x)/p.git":                        "",
		"-oProxyCommand=x:y":                              "",
	} {
		steps, err := job.Images(job.Image{Remote: remote})
		if host == "" {
			require.Error(t, err, remote)
			continue
		}
		require.NoError(t, err, remote)
		require.Equal(t, "docker pull "+host+"/adlr/megatron-lm/mcore_ci_dev:main", steps[0].Command)
	}
	_, err := job.Images(job.Image{Variant: "prod"})
	require.ErrorContains(t, err, "dev or lts")
}

func TestAnImageIsBroughtToEveryNode(t *testing.T) {
	t.Parallel()
	s := twoNodes("--lr", "1")
	for image, want := range map[string][]string{
		"megatron:dev":  {"pull", "--quiet", "megatron:dev"},
		"/shared/m.tar": {"load", "--quiet", "--input", "/shared/m.tar"}, // a file that docker save wrote
	} {
		s.Container = job.Container{Runtime: job.Docker, Image: image}
		script, err := job.Distribute(s, job.Options{})
		require.NoError(t, err)
		requireClean(t, script.Text)
		require.NotContains(t, script.Text, "#SBATCH --gpus")
		calls := typeIn(t, "export SLURM_NNODES=2 SLURM_JOB_NODELIST='n[0-1]' SLURM_JOB_ID=1\n"+strings.ReplaceAll(script.Text, "cd /shared/tree", "cd "+t.TempDir()))
		var got [][]string
		for _, c := range calls {
			if c.Prog == "docker" {
				got = append(got, c.Argv)
			}
		}
		require.Equal(t, [][]string{want, want}, got)
	}
	s.Container = job.Container{Runtime: job.Pyxis, Image: "/shared/m.sqsh"}
	script, err := job.Distribute(s, job.Options{})
	require.NoError(t, err)
	requireClean(t, script.Text)
	s.Container.Image = "nvcr.io#nvidia/pytorch"
	_, err = job.Distribute(s, job.Options{})
	require.ErrorContains(t, err, "enroot import")
	s.Container.Runtime = job.Apptainer
	_, err = job.Distribute(s, job.Options{})
	require.ErrorContains(t, err, "apptainer build FILE.sif docker://IMAGE", "the advice is for the runtime that the job uses")
	s.Container = job.Container{}
	_, err = job.Distribute(s, job.Options{})
	require.ErrorContains(t, err, "container.image")
}

// The environment lies in a mounted folder or in the image, or else a warning says that
// it lies in neither.
func TestTheEnvironmentLiesWhereTheContainerSeesIt(t *testing.T) {
	for name, c := range map[string]struct {
		venv   string
		mounts job.Mounts
		warns  bool
		sees   string // path that the guard on the host checks, or ""
	}{
		"in the worktree":   {"", nil, false, ".venv/bin/python"},
		"in the image":      {"/opt/venv", nil, false, ""},
		"in a mounted path": {"/envs/a", job.Mounts{"/lustre/alice/envs:/envs"}, false, "/lustre/alice/envs/a/bin/python"},
		"in neither":        {"/home/alice/venv", job.Mounts{"/lustre:/lustre"}, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := twoNodes()
			s.Venv = c.venv
			s.Container = job.Container{Runtime: job.Singularity, Image: "/images/a.sif", Mounts: c.mounts}
			script, err := job.Render(s, job.Options{})
			require.NoError(t, err)
			require.Equal(t, c.warns, strings.Contains(warned(script), "is not mounted into the container"))
			require.Equal(t, c.sees != "", strings.Contains(script.Text, "no virtual environment in"), "no host uv sync is asked for where the image has it")
			require.Contains(t, script.Text, c.sees)
		})
	}
}
