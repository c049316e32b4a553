package job_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/job"
)

func notes(ns []job.Note) string {
	var b strings.Builder
	for _, n := range ns {
		fmt.Fprintf(&b, "# %d: %s: %s\n", n.Line, n.What, n.Why.EN)
	}
	return b.String()
}

func TestAScriptBecomesASpecification(t *testing.T) {
	scripts, err := filepath.Glob("testdata/import/*.sh")
	require.NoError(t, err)
	require.NotEmpty(t, scripts)
	for _, file := range scripts {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			spec, ns := job.Import(filepath.Base(file), text)
			compareGolden(t, file+".txt", string(job.Encode(spec))+notes(ns))
			for _, n := range ns {
				require.NotEmpty(t, n.Why.ZH)
			}
			_, err = job.Render(spec, job.Options{})
			require.NoError(t, err, "what was imported can be rendered")
		})
	}
}

func TestWhatWasRenderedIsReadBack(t *testing.T) {
	for _, name := range []string{"plain", "plain.minimal", "singularity", "c10d", "docker"} {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join("testdata", name+".yaml"))
			require.NoError(t, err)
			spec, err := job.Decode(text)
			require.NoError(t, err)
			script, err := job.Render(spec, optionsFor(name))
			require.NoError(t, err)
			back, _ := job.Import("x", []byte(script.Text))
			require.Equal(t, spec.Args, back.Args)
			require.Equal(t, spec.Name, back.Name)
			require.Equal(t, spec.Nodes, back.Nodes)
			require.Equal(t, spec.Worktree, back.Worktree)
			require.Equal(t, spec.Comment, back.Comment)
			require.Equal(t, spec.Container.Image, back.Container.Image)
			for k, v := range spec.Env {
				require.Equal(t, v, back.Env[k])
			}
		})
	}
}

func TestARecipeBecomesASpecificationForEachProduct(t *testing.T) {
	text, err := os.ReadFile("testdata/import/recipe.yml")
	require.NoError(t, err)
	specs, ns, err := job.ImportRecipe(text)
	require.NoError(t, err)
	var b strings.Builder
	for _, s := range specs {
		b.Write(job.Encode(s))
		b.WriteString("---\n")
		_, err := job.Render(s, job.Options{})
		require.NoError(t, err)
	}
	compareGolden(t, "testdata/import/recipe.yml.txt", b.String()+notes(ns))

	for bad, says := range map[string]string{
		"a: 1":                          "it has no spec",
		"spec: 1":                       "it has no spec",
		"spec: {name: x}\nproducts: []": "name no test case",
		"spec: {name: x}\nproducts: [{test_case: [a], products: [{a: [" + strings.Repeat("1,", 60) + "1], b: [" + strings.Repeat("1,", 60) + "1]}]}]": "more than 2000",
	} {
		_, _, err := job.ImportRecipe([]byte(bad))
		require.ErrorContains(t, err, says)
	}
}

func FuzzImportTakesAnything(f *testing.F) {
	for _, s := range []string{"", "#!/bin/bash\n#SBATCH -N 2\nsrun torchrun x.py --a $B", "cd /a; python -m torch.distributed.run x.py", "\x00", "$((", "#SBATCH --gpus=a:b"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		spec, _ := job.Import("x", text)
		again, err := job.Decode(job.Encode(spec))
		require.NoError(t, err, "%s", job.Encode(spec))
		require.Equal(t, job.Hash(spec), job.Hash(again))
	})
}

func FuzzEncodedSpecificationsDecodeToThemselves(f *testing.F) {
	f.Add("a", "b c", "null")
	f.Add("\n", "-", "~")
	f.Add("1e3", ": #", "{}")
	f.Add("\u202e\u2028", "\x01\x7f\u0085", "'\"\\")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		for _, s := range []string{a, b, c} {
			if s == "" || strings.ToValidUTF8(s, "") != s || strings.ContainsAny(s, "\x00\ufeff") {
				t.Skip("no text")
			}
		}
		spec := job.Spec{Name: a, Args: []string{a, b, c, ""}, Env: map[string]string{b: c}, Container: job.Container{Image: c}, Nodes: ptr(3), Guards: ptr(false)}
		again, err := job.Decode(job.Encode(spec))
		require.NoError(t, err, "%s", job.Encode(spec))
		require.Equal(t, spec, again)
	})
}
