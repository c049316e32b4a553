package launch

import (
	"path/filepath"
	"strings"
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

// A Chinese answer has Chinese words for the severities, as plan's has.
func TestLintSaysTheSeverityInTheReadersLanguage(t *testing.T) {
	t.Parallel()
	c := opstest.NewCall(t, &opstest.Site{})
	c.Lang = lang.ZH
	file := filepath.Join(t.TempDir(), "run.sbatch")
	opstest.Write(t, file, "#!/bin/bash\n#SBATCH --nodes=2\npython pretrain_gpt.py\n")
	out, err := opstest.Do(t, c, Lint(), file)
	require.NoError(t, err)
	items := strings.Join(out.(LintOut).View(lang.ZH).Sections[0].Items, "\n")
	require.Contains(t, items, "错误：")
	require.Contains(t, items, "警告：")
	require.NotRegexp(t, "error|warning", items)
	require.Contains(t, strings.Join(out.(LintOut).View(lang.EN).Sections[0].Items, "\n"), "2: warning: ")
}

// A file that is no text is refused, and its bytes are not written to the terminal.
func TestImportReadsNoBinaryFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "run.sbatch")
	opstest.Write(t, file, "#!/bin/bash\nsrun x\x00\x1b[2J\n")
	for _, op := range []ops.Op{Import(), Lint()} {
		_, err := opstest.Do(t, opstest.NewCall(t, &opstest.Site{}), op, file)
		e := ops.AsError(err)
		require.NotNil(t, e)
		require.Equal(t, ops.BadInput, e.Code)
		require.Contains(t, e.Message.In(lang.EN), "NUL bytes")
	}
	opstest.Write(t, file, "")
	_, err := opstest.Do(t, opstest.NewCall(t, &opstest.Site{}), Lint(), file)
	require.Equal(t, file+" is empty", ops.AsError(err).Message.In(lang.EN))
}

// What starts nothing has no launch to be right or wrong: lint says so, and import has
// nothing to write.
func TestATextWithoutALaunchIsNotCalledFaultless(t *testing.T) {
	t.Parallel()
	c := opstest.NewCall(t, &opstest.Site{})
	for text, launches := range map[string]bool{
		"Dear team, please look at the run.\n": false, "#!/bin/bash\necho hello\n": false, "\n": false,
		"python train.py\n": true, "srun hostname\n": true, "sbatch run.sh\n": true,
	} {
		file := filepath.Join(t.TempDir(), "run.sh")
		opstest.Write(t, file, text)
		out, err := opstest.Do(t, c, Lint(), file)
		require.NoError(t, err)
		require.Equal(t, !launches, out.(LintOut).NoLaunch, text)
		require.False(t, out.(LintOut).Found())
		for l, says := range map[lang.Lang]string{lang.EN: "no launch in it to check", lang.ZH: "没有可检查的启动命令"} {
			require.Equal(t, !launches, strings.Contains(opstest.Text(t, out, l), says), text)
		}
		if launches {
			continue
		}
		_, err = opstest.Do(t, c, Import(), file)
		e := ops.AsError(err)
		require.NotNil(t, e, text)
		require.Equal(t, ops.BadInput, e.Code)
		require.Contains(t, e.Message.In(lang.EN), "run.sh has nothing to import")
	}
}
