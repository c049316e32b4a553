package lint

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
)

func TestEveryRuleSaysWhyAndWhatToDoInBothLanguages(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range Rules() {
		require.False(t, seen[r.ID], "%s twice", r.ID)
		seen[r.ID] = true
		require.Regexp(t, `^[a-z]+(-[a-z]+)*$`, r.ID)
		require.Contains(t, []rules.Severity{rules.Error, rules.Warning}, r.Severity)
		require.NotEmpty(t, r.Why.EN, r.ID)
		require.NotEmpty(t, r.Fix.EN, r.ID)
		require.Equal(t, lang.ZH, lang.Of(r.Why.ZH), r.ID)
		require.NotEmpty(t, r.Fix.ZH, r.ID)
		require.NotNil(t, r.check, r.ID)
	}
	require.Len(t, seen, 61)
}

func TestEveryRuleIsBrokenTwiceInTheCorpus(t *testing.T) {
	n := map[string]int{}
	for _, c := range corpus(t) {
		for _, w := range c.want {
			n[w]++
		}
	}
	for _, r := range Rules() {
		require.GreaterOrEqual(t, n[r.ID], 2, r.ID)
	}
}

func TestFindingsNameALineOfTheScript(t *testing.T) {
	for _, c := range corpus(t) {
		lines := strings.Count(c.script, "\n") + 1
		for _, f := range Check("", []byte(c.script)) {
			require.Positive(t, f.Line, c.name)
			require.LessOrEqual(t, f.Line, lines, c.name)
			require.NotEmpty(t, f.Message, c.name)
			require.NotEmpty(t, f.Fix, c.name)
			require.False(t, strings.ContainsFunc(f.Message+f.Fix, func(r rune) bool { return r != ' ' && !unicode.IsPrint(r) }), "%q", f.Message)
		}
	}
}

func TestFindingsAreToldInChinese(t *testing.T) {
	fs := CheckIn("a.slurm", []byte("#!/bin/bash\n#SBATCH -N 1 --gpus-per-node=8\n#SBATCH -J=x\n#SBATCH --time=1h\n#SBATCH --bogus\n#SBATCH -t\ncd /w\nuv run torchrun --standalone --nproc_per_node 4 pretrain_gpt.py --num-layers 2 --hidden-size 100 --num-attention-heads 16\n"), lang.ZH)
	require.NotEmpty(t, fs)
	for _, f := range fs {
		require.Equal(t, lang.ZH, lang.Of(f.Message), f.Message)
		require.Equal(t, lang.ZH, lang.Of(f.Fix), f.Fix)
		require.NotContains(t, f.Message, ": ", "a Chinese sentence has its own colon")
	}
}

// A fixed script has fewer faults, and no syntax error unless it had one before.
func TestFixLeavesAScriptThatIsReadAndHasFewerFaults(t *testing.T) {
	fixedRules := map[string]bool{}
	for _, c := range corpus(t) {
		before := Check("", []byte(c.script))
		fixed, applied, left := Fix([]byte(c.script), lang.EN)
		for _, f := range applied {
			fixedRules[f.Rule] = true
		}
		after := Check("", fixed)
		require.Equal(t, after, left, c.name)
		if len(applied) > 0 {
			require.NotEqual(t, c.script, string(fixed), c.name)
			require.Less(t, len(slices.DeleteFunc(slices.Clone(after), func(f Finding) bool {
				return !slices.ContainsFunc(before, func(g Finding) bool { return g.Rule == f.Rule })
			})), len(before), "%s\n%s", c.name, fixed)
		}
		if !slices.ContainsFunc(before, func(f Finding) bool { return f.Rule == "syntax-error" }) {
			require.False(t, slices.ContainsFunc(after, func(f Finding) bool { return f.Rule == "syntax-error" }), "%s\n%s", c.name, fixed)
		}
	}
	for _, rule := range []string{"crlf", "no-shebang", "sbatch-ignored", "bad-directive", "missing-pipefail", "background-no-wait", "unexported-variable", "early-rank-interpolation", "args-splitting", "bad-assignment", "broken-continuation", "docker-privileged", "export-none", "tty-in-batch"} {
		require.True(t, fixedRules[rule], "nothing fixed %s", rule)
	}
}

func TestFixKeepsAScriptWithoutFaultsAsItIs(t *testing.T) {
	for _, c := range corpus(t) {
		if len(c.want) > 0 {
			continue
		}
		fixed, applied, left := Fix([]byte(c.script), lang.EN)
		require.Equal(t, c.script, string(fixed), c.name)
		require.Empty(t, applied)
		require.Empty(t, left)
	}
}

func TestFixWritesWhatAPersonWould(t *testing.T) {
	for _, c := range []struct{ name, given, want string }{
		{
			"rank variables are left to the task",
			"#!/bin/bash\n#SBATCH -N 2 --ntasks-per-node=1 --gpus-per-node=8 -t 60\ncd /w\nH=$(hostname)\nsrun bash -c \"uv run torchrun --nnodes 2 --nproc_per_node 8 --node_rank $SLURM_NODEID --master_addr $H --master_port 29500 a.py\"\n",
			"#!/bin/bash\n#SBATCH -N 2 --ntasks-per-node=1 --gpus-per-node=8 -t 60\ncd /w\nH=$(hostname)\nsrun bash -c \"uv run torchrun --nnodes 2 --nproc_per_node 8 --node_rank \\$SLURM_NODEID --master_addr $H --master_port 29500 a.py\"\n",
		},
		{
			"a late directive moves to the head",
			"#!/bin/bash\n#SBATCH -N 1 --gpus-per-node=8\ncd /w\n #sbatch --time=60\nuv run torchrun --standalone --nproc_per_node 8 a.py\n",
			"#!/bin/bash\n#SBATCH -N 1 --gpus-per-node=8\n#SBATCH --time=60\ncd /w\nuv run torchrun --standalone --nproc_per_node 8 a.py\n",
		},
		{
			"a directive is spelt right",
			"#!/bin/bash\n#SBATCH --nodes = 1\n#SBATCH --gpu_per_node=8 --time=12h\ncd /w\nuv run torchrun --standalone --nproc_per_node 8 a.py\n",
			"#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --gpus-per-node=8 --time=12:00:00\ncd /w\nuv run torchrun --standalone --nproc_per_node 8 a.py\n",
		},
		{
			"days by their letter are Slurm's days, hours its hours",
			"#!/bin/bash\n#SBATCH -N 1 --gpus-per-node=8\n#SBATCH --time=2d\ncd /w\nuv run torchrun --standalone --nproc_per_node 8 a.py\n",
			"#!/bin/bash\n#SBATCH -N 1 --gpus-per-node=8\n#SBATCH --time=2-00:00:00\ncd /w\nuv run torchrun --standalone --nproc_per_node 8 a.py\n",
		},
		{
			"docker is given the network that it lacks",
			"#!/bin/bash\n#SBATCH -N 2 --ntasks-per-node=1 --gpus-per-node=8 -t 60\nH=$(hostname)\nsrun docker run --rm --gpus all --ipc=host -v /nfs/c:/c -w /c img:1 python -m torch.distributed.run --nnodes 2 --nproc_per_node 8 --rdzv_backend c10d --rdzv_endpoint $H:29500 train.py\n",
			"#!/bin/bash\n#SBATCH -N 2 --ntasks-per-node=1 --gpus-per-node=8 -t 60\nH=$(hostname)\nsrun docker run --network host --rm --gpus all --ipc=host -v /nfs/c:/c -w /c img:1 python -m torch.distributed.run --nnodes 2 --nproc_per_node 8 --rdzv_backend c10d --rdzv_endpoint $H:29500 train.py\n",
		},
		{
			"docker is given the shared memory that it lacks",
			"#!/bin/bash\n#SBATCH -N 2 --ntasks-per-node=1 --gpus-per-node=8 -t 60\nH=$(hostname)\nsrun docker run --rm --gpus all --net=host -v /nfs/c:/c -w /c img:1 python -m torch.distributed.run --nnodes 2 --nproc_per_node 8 --rdzv_backend c10d --rdzv_endpoint $H:29500 train.py\n",
			"#!/bin/bash\n#SBATCH -N 2 --ntasks-per-node=1 --gpus-per-node=8 -t 60\nH=$(hostname)\nsrun docker run --ipc=host --rm --gpus all --net=host -v /nfs/c:/c -w /c img:1 python -m torch.distributed.run --nnodes 2 --nproc_per_node 8 --rdzv_backend c10d --rdzv_endpoint $H:29500 train.py\n",
		},
		{
			"docker is given both that it lacks",
			"#!/bin/bash\n#SBATCH -N 2 --ntasks-per-node=1 --gpus-per-node=8 -t 60\nH=$(hostname)\nsrun docker run --rm --gpus all \\\n  -v /nfs/c:/c -w /c img:1 python -m torch.distributed.run --nnodes 2 --nproc_per_node 8 --rdzv_backend c10d --rdzv_endpoint $H:29500 train.py\n",
			"#!/bin/bash\n#SBATCH -N 2 --ntasks-per-node=1 --gpus-per-node=8 -t 60\nH=$(hostname)\nsrun docker run --network host --ipc=host --rm --gpus all \\\n  -v /nfs/c:/c -w /c img:1 python -m torch.distributed.run --nnodes 2 --nproc_per_node 8 --rdzv_backend c10d --rdzv_endpoint $H:29500 train.py\n",
		},
		{
			"a line for the head stands below the last directive",
			"#!/bin/bash\n\n# a run\n#SBATCH -N 1 --gpus-per-node=8\n\n#SBATCH -t 60\n\ncd /w\nuv run torchrun --standalone --nproc_per_node 8 a.py | tee log\n",
			"#!/bin/bash\n\n# a run\n#SBATCH -N 1 --gpus-per-node=8\n\n#SBATCH -t 60\nset -o pipefail\n\ncd /w\nuv run torchrun --standalone --nproc_per_node 8 a.py | tee log\n",
		},
		{
			"a blank before an equals sign goes",
			"#!/bin/bash\n#SBATCH -N 1 --gpus-per-node=8 -t 60\ncd /w\nexport A =4\nuv run torchrun --standalone --nproc_per_node 8 a.py\n",
			"#!/bin/bash\n#SBATCH -N 1 --gpus-per-node=8 -t 60\ncd /w\nexport A=4\nuv run torchrun --standalone --nproc_per_node 8 a.py\n",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			fixed, _, _ := Fix([]byte(c.given), lang.EN)
			require.Equal(t, c.want, string(fixed))
		})
	}
}

func TestBatchAnswersEveryLine(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a.slurm")
	require.NoError(t, os.WriteFile(file, []byte("#!/bin/bash\n#SBATCH -N 1 --gpus-per-node=8\ncd /w\nuv run torchrun --standalone --nproc_per_node 8 a.py\n"), 0o644))
	quoted, err := json.Marshal(file)
	require.NoError(t, err)
	for name, text := range map[string]string{"job.yaml": "name: a\n", "spec": "nodes: 2\n", "program": "\x7fELF\x00\x01|", "notes.sh": "# nothing yet\n"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	at := func(name string) string { return fmt.Sprintf(`{"id":1,"path":%q}`, filepath.Join(dir, name)) }

	for _, c := range []struct{ name, line, want string }{
		{"a script", `{"id":7,"path":` + string(quoted) + `}`, `{"id":7,"findings":[{"rule":"no-time-limit","line":2`},
		{"a missing file", `{"id":"x","path":"/nowhere/a.slurm"}`, `{"id":"x","error":{"code":"not_found","field":"path"`},
		{"no path", `{"id":"x"}`, `{"id":"x","error":{"code":"bad_input","field":"path"`},
		{"a folder", `{"id":"x","path":"/"}`, `{"id":"x","error":{"code":"bad_input","field":"path"`},
		{"a specification", at("job.yaml"), `{"id":1,"error":{"code":"bad_input","field":"path"`},
		{"a specification without a suffix", at("spec"), `{"id":1,"error":{"code":"bad_input","field":"path"`},
		{"a program", at("program"), `{"id":1,"error":{"code":"bad_input","field":"path"`},
		{"nothing but comments", at("notes.sh"), `{"id":1,"findings":[`},
		{"no JSON", `{`, `{"id":null,"error":{"code":"bad_input"`},
		{"not an object", `[1]`, `{"id":null,"error":{"code":"bad_input"`},
		{"a path that is no string, with its id", `{"id":5,"path":3}`, `{"id":5,"error":{"code":"bad_input"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Batch([]byte(c.line))
			require.True(t, json.Valid(got), "%s", got)
			require.True(t, strings.HasPrefix(string(got), c.want), "%s", got)
			require.NotContains(t, string(got), "\n")
		})
	}
}

// What lint reads at all is text of at most four megabytes.
func TestBatchSaysWhatIsNoScript(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		name, text string
		size       int64
		want       string
	}{
		{"a.sh", "#!/bin/bash\nname: a\n", 0, `"findings":[`}, // its lines could be a specification's
		{"a.json", "{}", 0, "a job specification, which plan judges"},
		{"a.yml", "echo\n", 0, "a job specification, which plan judges"},
		{"most", "", 4 << 20, "NUL bytes"},
		{"more", "", 4<<20 + 1, "larger than any batch script (4 MiB)"},
	} {
		path := filepath.Join(dir, c.name)
		require.NoError(t, os.WriteFile(path, []byte(c.text), 0o600))
		if c.size > 0 {
			require.NoError(t, os.Truncate(path, c.size))
		}
		require.Contains(t, string(Batch(fmt.Appendf(nil, `{"id":1,"path":%q}`, path))), c.want, c.name)
	}
}

// A finding says which part of the script it is about, where there is one, and what to do about it.
func TestAFindingNamesWhatIsWrongAndWhatToDo(t *testing.T) {
	const late, below = "sbatch never reads this directive", "#!/bin/bash\n#SBATCH -t 60 --gpus-per-node=8\n"
	for script, want := range map[string]Finding{
		"#!/bin/bash\n#SBATCH --gpus-per-node=8\nhostname\n": {"no-time-limit", 2, rules.Warning, "no --time: the partition's default applies, so the job is killed early or scheduled late", "#SBATCH --time=D-HH:MM:SS"},
		below + "hostname\n#SBATCH -N 1\n":                   {"sbatch-ignored", 4, rules.Error, "#SBATCH -N 1 (after the first command): " + late, "move it above the first command and begin the line with #SBATCH"},
		below + " #SBATCH -N 1\nhostname\n":                  {"sbatch-ignored", 3, rules.Error, "#SBATCH -N 1 (blanks before #SBATCH): " + late, "begin the line with #SBATCH, without blanks before it"},
		below + "#SBATCH -o=logs/%j.out\nhostname\n":         {"bad-directive", 3, rules.Error, `a short option such as -o takes its value without =, so the value here is "=logs/%j.out"`, "correct the directive (man sbatch lists the options)"},
		below + "export WORLD=$((SLURM_NNODES * SLURM_NTASKS_PER_NODE))\n": {
			"unset-variable", 3, rules.Error, "$SLURM_NTASKS_PER_NODE, which Slurm sets only for --ntasks-per-node: nothing sets this variable: the flag before it swallows the next word, or the value is empty",
			"give --ntasks-per-node to sbatch, or use a variable that Slurm always sets, such as SLURM_GPUS_ON_NODE",
		},
		below + "#SBATCH -J=a -A=b\nhostname\n":   {"bad-directive", 3, rules.Error, `a short option such as -J takes its value without =, so the value here is "=a"`, "correct the directive (man sbatch lists the options)"},
		below + "#SBATCH -o run.log\nhostname\n":  {"log-name-fixed", 3, rules.Warning, "-o run.log: the log has the same name every time: the next run or the next array task overwrites it", "%x-%j.out (in arrays %x-%A_%a.out)"},
		below + "export A\x7f\u2028\u2029\t =1\n": {"bad-assignment", 3, rules.Error, "export A    =1: bash does not read this as an assignment: the variable stays unset", "NAME=value, without blanks, $ or set"},
	} {
		require.Equal(t, []Finding{want}, Check("", []byte(script)), script)
	}
}

// A script that starts nothing has nothing to judge.
func TestWhatAScriptLaunches(t *testing.T) {
	for script, want := range map[string]bool{
		"echo hi": false, "srun hostname": true, "torchrun a.py": true, "salloc -N 1": true, "docker run img:1 true": true, "sbatch a.sh": true,
	} {
		_, launches := Examine("", []byte(script+"\n"), lang.EN)
		require.Equal(t, want, launches, script)
	}
}

func TestAScriptWithoutFaultsHasAnEmptyListInBatch(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	require.NoError(t, os.WriteFile(path, []byte("echo hi\n"), 0o600))
	got := Batch(fmt.Appendf(nil, `{"id":"a","path":%q}`, path))
	require.JSONEq(t, `{"id":"a","findings":[]}`, string(got))
}

// FuzzFix requires that Fix ends without panic for any bytes, and returns the findings
// that are left.
func FuzzFix(f *testing.F) {
	for i, c := range corpus(f) {
		if testing.Short() && i%4 > 0 {
			continue // TestFixLeavesAScriptThatIsReadAndHasFewerFaults checks every script
		}
		f.Add([]byte(c.script))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		fixed, _, left := Fix(src, lang.EN)
		if len(left) != len(Check("", fixed)) {
			t.Fatal("what is left is not what a second reading finds")
		}
	})
}

// Lint does not know how a program other than Megatron's gets its rank. It may read
// SLURM_PROCID, as most programs that srun starts directly do.
func TestOnlyMegatronSurelyReadsRank(t *testing.T) {
	for program, want := range map[string]rules.Severity{"pretrain_gpt.py": rules.Error, "train.py": rules.Warning} {
		found := Check("", []byte("#!/bin/bash\n#SBATCH -N 2\n#SBATCH --ntasks-per-node=8\n#SBATCH --gpus-per-node=8\nsrun python /lustre/"+program+" --bf16\n"))
		at := slices.IndexFunc(found, func(f Finding) bool { return f.Rule == "rank-env-missing" })
		require.GreaterOrEqual(t, at, 0, program)
		require.Equal(t, want, found[at].Severity, program)
	}
}
