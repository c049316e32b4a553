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

// Import gives back the specification of a rendered script, whatever its values are.
func TestWhatWasRenderedIsReadBack(t *testing.T) {
	for name, spec := range goldenSpecs(t) {
		t.Run(name, func(t *testing.T) {
			o := optionsFor(name)
			script, err := job.Render(spec, o)
			require.NoError(t, err)
			back, notes := job.Import("x", []byte(script.Text))
			again, err := job.Render(back, o)
			require.NoError(t, err)
			if o.Minimal { // a minimal script has no embedded specification, and is imported like any script
				require.Equal(t, unhashed(script.Text), unhashed(again.Text))
				return
			}
			require.Equal(t, o.Site.Fill(spec), back)
			require.Equal(t, script.Text, again.Text)
			require.Empty(t, notes)
		})
	}
}

func requireReadBack(t *testing.T, s job.Spec) {
	t.Helper()
	script, err := job.Render(s, job.Options{})
	require.NoError(t, err)
	back, notes := job.Import("x", []byte(script.Text))
	require.Equal(t, s, back)
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
		requireReadBack(t, withHostileValues(s))
	}
}

// Import keeps an edit that a person made to a rendered script, and the fields of the
// specification that the script does not show.
func TestAnEditOfARenderedScriptIsReadBack(t *testing.T) {
	s := twoNodes("--lr", "3e-4")
	s.Time, s.Signal, s.KillSwitch = "60", "USR1@300", "/stop"
	s.Retry = job.Retry{Max: new(2), On: []string{"slurm_node_fail"}}
	s.Env = map[string]string{"T_A": "1", "T_B": "2"}
	s.Preset = []string{"debug-nccl"}
	script, err := job.Render(s, job.Options{})
	require.NoError(t, err)
	edited := strings.NewReplacer(
		"#SBATCH --time=60\n", "#SBATCH --time=90\n#SBATCH --qos=long\n",
		"  --lr 3e-4\n", "  --lr 1e-4\n", "export T_A=1\n", "export T_A=7\n", "export T_B=2\n", "module load cuda\n",
	).Replace(script.Text)
	back, notes := job.Import("x", []byte(edited))
	want := s
	want.Time, want.QOS, want.Env = "90", "long", map[string]string{"T_A": "7"}
	want.Args = []string{"--lr", "1e-4", "--exit-signal-handler", "--exit-signal", "SIGUSR1"}
	require.Equal(t, want, back)
	require.Len(t, notes, 1, "the rest of the script is the rendering's own")
	require.Equal(t, "module load cuda", notes[0].What)
}

func TestASpecificationThatWouldNotComeBackIsNotCarried(t *testing.T) {
	for _, word := range []string{"a\xffb", strings.Repeat("x", 100<<10)} {
		s := twoNodes(word, word, word)
		script, err := job.Render(s, job.Options{})
		require.NoError(t, err)
		require.NotContains(t, script.Text, "#| ")
		back, _ := job.Import("x", []byte(script.Text))
		require.Equal(t, s.Args, back.Args)
	}
}

// The embedded specification is inert: no shell and no sbatch reads a word of it.
func TestWhatAScriptCarriesIsSkipped(t *testing.T) {
	s := withHostileValues(twoNodes())
	script, err := job.Render(s, job.Options{})
	require.NoError(t, err)
	_, block, _ := strings.Cut(script.Text, "\n# The specification, ")
	for line := range strings.Lines(block[strings.IndexByte(block, '\n')+1:]) {
		require.True(t, strings.HasPrefix(line, "#| "), "%q", line)
		require.False(
			t,
			strings.ContainsFunc(strings.TrimSuffix(line, "\n"), func(r rune) bool { return r == '\r' || r == '\v' || r == '\u2028' || r == 0x85 }),
			"%q",
			line,
		)
	}
}

// unhashed returns a script without the comments on the specification's hash and on the
// reason for a variable. These differ if the specification sets the variable itself.
func unhashed(script string) string {
	var kept []string
	for line := range strings.Lines(script) {
		if !strings.HasPrefix(line, "# Rendered by ") && !strings.HasPrefix(line, "# Megatron: ") {
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
				return // no text
			}
		}
		spec := job.Spec{
			Name:      a,
			Args:      []string{a, b, c, ""},
			Env:       map[string]string{b: c},
			Container: job.Container{Image: c},
			Nodes:     new(3),
			Guards:    new(false),
		}
		again, err := job.Decode(job.Encode(spec))
		require.NoError(t, err, "%s", job.Encode(spec))
		require.Equal(t, spec, again)
	})
}

func TestACopyOfTheOutputIsNamedWhereItIsNotWritten(t *testing.T) {
	_, ns := job.Import("x", []byte("#!/bin/bash\n#SBATCH --nodes=1\ncd /w\ndate | tee\nsrun python -m torch.distributed.run --nproc-per-node=8 a.py 2>&1 | tee -a run.log\n"))
	text := notes(ns)
	require.Contains(t, text, "tee run.log")
	require.Equal(t, 1, strings.Count(text, "tee"), "without a file nothing is lost")
}

// sbatch sends the mails of every --mail-type, while of other options the last counts.
func TestEveryKindOfMailIsImported(t *testing.T) {
	spec, _ := job.Import("x", []byte("#!/bin/bash\n#SBATCH --mail-type=BEGIN\n#SBATCH --mail-type=END,FAIL\n#SBATCH --qos=a\n#SBATCH --qos=b\ncd /w\npython a.py\n"))
	require.Equal(t, "BEGIN,END,FAIL", spec.MailType)
	require.Equal(t, "b", spec.QOS)
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
