package job_test

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"mvdan.cc/sh/v3/syntax"

	"github.com/megatron-ops/megatron-ops/slurm/job"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// Every testdata/NAME.yaml is a specification, and NAME.sh is the script that an expert
// would write for it. NAME.minimal.yaml is rendered with the option Minimal.
func TestScriptsAreWhatAnExpertWouldWrite(t *testing.T) {
	t.Parallel()
	for name, spec := range goldenSpecs(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			script, err := job.Render(spec, optionsFor(name))
			require.NoError(t, err)
			compareGolden(t, "testdata/"+name+".sh", script.Text)
			requireClean(t, script.Text)
			again, err := job.Render(spec, optionsFor(name))
			require.NoError(t, err)
			require.Equal(t, script, again, "the same specification gives the same bytes")
		})
	}
}

// goldenSpecs decodes testdata/NAME.yaml for every NAME.
func goldenSpecs(t *testing.T) map[string]job.Spec {
	t.Helper()
	files, err := filepath.Glob("testdata/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	specs := map[string]job.Spec{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		spec, err := job.Decode(text)
		require.NoError(t, err, file)
		specs[strings.TrimSuffix(filepath.Base(file), ".yaml")] = spec
	}
	return specs
}

func optionsFor(name string) job.Options {
	o := job.Options{Version: "v0.0.0"}
	if strings.HasSuffix(name, ".minimal") {
		o.Minimal = true
	}
	if strings.HasPrefix(name, "site") {
		o.Site = testSite
	}
	return o
}

var testSite = job.Site{
	Account: "research", Partition: "prod", CPUPartition: "cpu", GPUsPerNode: 4, GPU: "h100", GPURequest: "gres", GRESType: "h100",
	CPUsPerTask: 64, Time: "04:00:00", Container: job.Container{Runtime: job.Pyxis}, SecretsFile: "~/.config/megatron-ops/secrets",
	Presets: map[string]map[string]string{"fabric": {"NCCL_SOCKET_IFNAME": "eth0", "NCCL_IB_HCA": "=mlx5_0:1"}},
}

func compareGolden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err, "run go test ./slurm/job -update")
	require.Equal(t, string(want), got, "run go test ./slurm/job -update and read the difference")
}

// requireClean requires that script parses as bash and, without -short, that shellcheck
// finds nothing in it if shellcheck is installed.
func requireClean(t *testing.T, script string) {
	t.Helper()
	_, err := parsed(script)
	require.NoError(t, err, script)
	if testing.Short() {
		return
	}
	if _, err := exec.LookPath("shellcheck"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("CI=true promises shellcheck: run .ci/setup")
		}
		t.Log("shellcheck is not installed: the script is only parsed")
		return
	}
	cmd := exec.Command("shellcheck", "--shell=bash", "-")
	cmd.Stdin = strings.NewReader(script)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s\n%s", out, script)
}

// parsed returns the syntax tree of a bash script.
func parsed(script string) (*syntax.File, error) {
	return syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(script), "script")
}
