package job_test

import (
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
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

// What was rendered is read back: the specification gives the same script, and
// nothing is left to note.
func TestWhatWasRenderedIsReadBack(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	require.NoError(t, err)
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		if strings.HasPrefix(name, "site") {
			continue // what a site's profile adds is its own
		}
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			spec, err := job.Decode(text)
			require.NoError(t, err)
			script, err := job.Render(spec, optionsFor(name))
			require.NoError(t, err)
			back, notes := job.Import("x", []byte(script.Text))
			again, err := job.Render(back, optionsFor(name))
			require.NoError(t, err)
			require.Equal(t, unhashed(script.Text), unhashed(again.Text))
			require.Empty(t, notes)
		})
	}
}

func requireReadBack(t *testing.T, s job.Spec) {
	t.Helper()
	script, err := job.Render(s, job.Options{})
	require.NoError(t, err)
	back, notes := job.Import("x", []byte(script.Text))
	again, err := job.Render(back, job.Options{})
	require.NoError(t, err)
	require.Equal(t, unhashed(script.Text), unhashed(again.Text))
	require.Empty(t, notes)
}

func TestRandomSpecificationsAreReadBack(t *testing.T) {
	t.Parallel()
	for seed := range int64(100) {
		requireReadBack(t, randomSpec(rand.New(rand.NewSource(seed))))
	}
	for _, runtime := range []string{"", job.Pyxis, job.Enroot, job.Singularity, job.Docker} {
		s := twoNodes()
		if runtime != "" {
			s.Container = job.Container{Runtime: runtime, Image: "/images/a.sqsh"}
		}
		requireReadBack(t, carrying(s))
	}
}

// unhashed is a script without the line that tells its specification's hash,
// which says a default that is written out apart from one that is left out.
func unhashed(script string) string {
	var kept []string
	for line := range strings.Lines(script) {
		if !strings.HasPrefix(line, "# Rendered by ") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
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
		requireReadBack(t, s)
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

func TestWhatTheSpecificationRefusesIsLeftOutWithANote(t *testing.T) {
	spec, ns := job.Import("x", []byte("#!/bin/bash\n#SBATCH --nodes=2 --time=soon --qos=a;b\ncd /w\nexport ARGS=1 T_X=2 MASTER_PORT=295000\nsrun python -m torch.distributed.run --nproc-per-node=8 a.py\n"))
	require.Empty(t, spec.Validate())
	require.Equal(t, map[string]string{"T_X": "2"}, spec.Env)
	require.Empty(t, spec.Time)
	require.Nil(t, spec.MasterPort)
	text := notes(ns)
	for _, what := range []string{"time: soon", "qos: a;b", "env.ARGS", "master_port: 295000"} {
		require.Contains(t, text, what)
	}
	for _, n := range ns {
		require.Equal(t, lang.ZH, lang.Of(n.Why.ZH), n.Why.ZH)
	}
}
