package diagnose_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
)

func TestAnImportErrorSaysWhichKindItIs(t *testing.T) {
	from := func(script, inner, said string) string {
		return "Traceback (most recent call last):\n  File \"" + script +
			"/pretrain_gpt.py\", line 9, in <module>\n    from megatron.training import pretrain\n  File \"" + inner +
			"\", line 3, in <module>\n    import x\n" + said + "\n"
	}
	for name, c := range map[string]struct {
		log, worktree, root string
		kind                report.ImportKind
	}{
		"another worktree": {from("/home/a/old-megatron", "/home/a/old-megatron/megatron/training/__init__.py",
			"ModuleNotFoundError: No module named 'megatron.core.optimizer'"), "/home/a/megatron", "/home/a/old-megatron", report.WrongWorktree},
		"a stale PYTHONPATH": {from("/home/a/megatron", "/scratch/old/megatron/training/__init__.py",
			"ModuleNotFoundError: No module named 'megatron.core.optimizer'"), "/home/a/megatron", "/scratch/old/", report.StalePath},
		"a name from a stale": {from("/home/a/megatron", "/home/a/megatron/megatron/training/a.py",
			"ImportError: cannot import name 'f' from 'megatron.core' (/scratch/old/megatron/core/__init__.py)"), "", "/scratch/old/", report.StalePath},
		"one that is installed": {
			from("/home/a/megatron", "/home/a/megatron/megatron/training/a.py",
				"ImportError: cannot import name 'f' from 'megatron.core' (/venv/lib/python3.11/site-packages/megatron/core/__init__.py)"),
			"", "/home/a/megatron", report.OldCheckout,
		},
		"an old commit": {from("/home/a/megatron", "/home/a/megatron/megatron/training/a.py",
			"ModuleNotFoundError: No module named 'megatron.core.optimizer'"), "/home/a/megatron", "/home/a/megatron", report.OldCheckout},
		"an old commit, by an import of a name": {
			"Traceback (most recent call last):\n  File \"/home/a/megatron/pretrain_gpt.py\", line 9, in <module>\n    import_module(name)\n" +
				"  File \"/usr/lib/python3.11/importlib/__init__.py\", line 126, in import_module\n    return _gcd_import(name)\n" +
				"  File \"/venv/site-packages/loader.py\", line 12, in load\n    load(name)\n  File \"models/a.py\", line 1, in <module>\n    import x\n" +
				"ModuleNotFoundError: No module named 'megatron.core.optimizer'\n",
			"/home/a/megatron", "/home/a/megatron", report.OldCheckout,
		},
		"no uv sync, a line alone": {"ModuleNotFoundError: No module named 'einops'\n", "/home/a/megatron", "uv sync", report.NoSync},
		"no uv sync": {
			from("/home/a/megatron", "/home/a/megatron/megatron/training/a.py", "ModuleNotFoundError: No module named 'einops'"),
			"/home/a/megatron", "uv sync", report.NoSync,
		},
	} {
		r := diagnosetest.With(t, c.log, diagnose.Context{JobState: "FAILED", Worktree: c.worktree})
		require.Equal(t, outcome.ImportError, r.Class, name)
		require.Equal(t, c.kind, r.ImportKind, name)
		require.Contains(t, r.Advice[0], c.root, name)
		require.NotEqual(t, r.Advice[0], r.View(lang.ZH).Sections[3].Items[0], name)
	}
}

// If a script could not activate its Python environment and went on, the verdict about a missing module
// shows that line too.
func TestAModuleOfAnEnvironmentThatWasNotEntered(t *testing.T) {
	const script = "/var/spool/slurmd/job00017/slurm_script: line 7: "
	const conda, venv = script + "conda: command not found", script + "/scratch/venv/bin/activate: No such file or directory"
	const unknown, modules = "EnvironmentNameNotFound: Could not find conda environment: train", script + "module: command not found"
	missing, unfit := diagnosetest.Raised("ModuleNotFoundError: No module named 'yaml'"), diagnosetest.Raised("ImportError: cannot import name 'x' from 'y'")
	const left = "srun: error: n1: task 0: Exited with exit code 1\n"
	for log, line := range map[string]string{
		conda + "\n" + missing + left:   conda,
		venv + "\n" + missing + left:    venv,
		unknown + "\n" + missing + left: unknown,
		modules + "\n" + missing + left: "",
		conda + "\n" + unfit + left:     "",
		missing + left + conda + "\n":   "",
		"EnvironmentFileNotFound: '/w/env.ymls' file not found\n" + missing + left: "EnvironmentFileNotFound: '/w/env.ymls' file not found",
		"Could not find conda environment: train\n" + missing + left:               "Could not find conda environment: train",
	} {
		r := diagnosetest.Text(t, log)
		require.Equal(t, outcome.ImportError, r.Class, log)
		shown := ""
		for _, e := range r.Evidence {
			if e.Why == "same cause" {
				shown = e.Text
			}
		}
		require.Equal(t, line, shown, log)
	}
}
