package launch

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/opstest"
)

// To a shell, nothing is wrong with the lines of a specification; lint must not call it
// faultless.
func TestLintReadsNoSpecification(t *testing.T) {
	t.Parallel()
	c := opstest.NewCall(t, &opstest.Site{})
	for name, text := range map[string]string{
		"job.yaml": "name: pretrain\nnodes: 2\n", "faulty.yml": "nodse: 2\n", "job.json": `{"nodes": 2}`, "no-suffix": "nodes: 2\nscript: srun hostname\n",
	} {
		file := filepath.Join(t.TempDir(), name)
		opstest.Write(t, file, text)
		_, err := opstest.Do(t, c, Lint(), file)
		e := ops.AsError(err)
		require.NotNil(t, e, name)
		require.Equal(t, ops.BadInput, e.Code, name)
		require.Equal(t, "script", e.Field)
		require.Contains(t, e.Message.In(lang.EN), name+" is a job specification")
		require.Contains(t, e.Fix.In(lang.ZH), "plan -f")
	}
	for name, text := range map[string]string{"run.sbatch": "#!/bin/bash\nnodes: 2\n", "run.sh": "#!/bin/bash\nsrun hostname\n"} {
		file := filepath.Join(t.TempDir(), name)
		opstest.Write(t, file, text)
		_, err := opstest.Do(t, c, Lint(), file)
		require.NoError(t, err, name)
	}
}
