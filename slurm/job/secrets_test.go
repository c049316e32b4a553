package job_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/job"
)

func TestSecretsComeFromAFileOfTheirOwner(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "secrets")
	text := "HF_TOKEN=abc$(touch \"$CANARY\")==\n# a comment\nPATH=/nowhere\nBASH_ENV=/x\nWANDB_API_KEY=last"
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	o := job.Options{Site: job.Site{SecretsFile: file}}
	for _, runtime := range []string{"none", "docker", "singularity"} {
		s := bareLaunch()
		if runtime != "none" {
			s.Container = job.Container{Runtime: runtime, Image: "/i.sif"}
		}
		r := execute(t, s, o)
		require.Zero(t, r.code, r.output)
		for _, c := range r.of("python") {
			require.Equal(t, "abc$(touch \"$CANARY\")==", c.Env["HF_TOKEN"], runtime)
			require.Equal(t, "last", c.Env["WANDB_API_KEY"])
			require.NotEqual(t, "/nowhere", c.Env["PATH"])
		}
		for _, c := range r.calls {
			require.NotContains(t, c.Argv, "abc")
		}
	}

	require.NoError(t, os.Chmod(file, 0o644))
	r := execute(t, bareLaunch(), o)
	require.Equal(t, 3, r.code)
	require.Contains(t, r.output, "must be yours, with mode 600")

	o.Site.SecretsFile = "/nowhere/secrets"
	require.Zero(t, execute(t, bareLaunch(), o).code, "no file, no secrets")
}

func TestSecretsAreRefusedInTheSpecification(t *testing.T) {
	for _, name := range []string{"HF_TOKEN", "WANDB_API_KEY", "AWS_SECRET_ACCESS_KEY", "DB_PASSWORD"} {
		s := twoNodes()
		s.Env = map[string]string{name: "x"}
		_, err := job.Render(s, job.Options{})
		require.ErrorContains(t, err, "env."+name+": looks like a secret")
		require.NotContains(t, err.Error(), "\"x\"")
	}
	s := twoNodes()
	s.Env = map[string]string{"TOKENIZERS_PARALLELISM": "false", "NCCL_IB_PKEY": "1", "MONKEY": "1"}
	_, err := job.Render(s, job.Options{})
	require.NoError(t, err)
}
