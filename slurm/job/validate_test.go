package job_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// set decodes a specification with one field, given by its path.
func set(t *testing.T, field, value string) (job.Spec, error) {
	t.Helper()
	tree := map[string]string{
		"container.image": `container: {runtime: pyxis, image: %}`, "container.mounts": `container: {runtime: docker, image: a, mounts: [%]}`,
		"container.workdir": `container: {runtime: docker, image: a, workdir: %}`,
		"rdzv.conf":         `rdzv: {conf: {x: %}}`, "args": `args: [%]`, "srun_args": `srun_args: [%]`, "sbatch": `sbatch: [%]`, "path": `path: [%]`, "env": `env: {%: x}`, "preset": `preset: [%]`,
	}[field]
	if tree == "" {
		tree = field + ": %"
	}
	if slices.Contains([]string{"nodes", "gpus_per_node", "master_port", "segment", "nice"}, field) {
		return job.Decode([]byte("{worktree: /w, " + field + ": " + value + "}"))
	}
	text := "{worktree: /w, " + strings.ReplaceAll(tree, "%", yamlQuoted(value)) + "}"
	if field == "worktree" {
		text = "worktree: " + yamlQuoted(value)
	}
	return job.Decode([]byte(text))
}

func yamlQuoted(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "\r", `\r`, "\x00", `\0`).Replace(s) + `"`
}

var grammars = []struct {
	field   string
	takes   []string
	refuses []string
}{
	{"name", []string{"a", "gpt-175b_tp8.pp16", "A+b"}, []string{".", "..", "a b", "a/b", "-a", "a%j", strings.Repeat("a", 65), "gpт", "a\n"}},
	{"account", []string{"research", "lab@gpu", "a.b-c"}, []string{"a,b", "a b", "-a", "rеsearch", "a;b", "a#"}},
	{"partition", []string{"dev", "dev,prod"}, []string{"dev,", "dev prod", "dev --qos=x", "$(x)"}},
	{"time", []string{"90", "1:30", "04:00:00", "2-0", "2-12:30", "7-00:00:00", "UNLIMITED", "infinite"}, []string{"-1", "1.5", "10m", "1:2:3:4", "1-", "soon", "99999999999"}},
	{"mem", []string{"0", "1000G", "64000", "2T"}, []string{"1000GB", "-1", "1.5G", "all"}},
	{"mem_per_gpu", []string{"120G", "0"}, []string{"1GB", "all"}},
	{"switches", []string{"1", "2@60", "1@01:00:00", "3@1-00"}, []string{"0", "-1", "1@", "@5", "1@soon"}},
	{"segment", []string{"1", "18"}, []string{"0", "-1", "x"}},
	{"nice", []string{"0", "100", "-5"}, []string{"x", "99999999999"}},
	{"path", []string{"/opt/bin", "/opt/my tools"}, []string{"bin", "/a:/b", "~/bin", "/a/../b", "$HOME/bin", "/a\nb"}},
	{"sbatch", []string{"--licenses=a:2", "--gres=nvme:1", "--contiguous", "--exclusive=user", "--export-tres=x", "--hold", "--tmp=10G", "--cpus-per-gpu=8", "--wckey=a b"}, []string{
		"-N4", "licenses=a", "--licenses", "--contiguous=1", "--ntasks=4", "--ntasks-per-gpu=1", "--overcommit", "--export=NONE", "--export=ALL,BASH_ENV=/x", "--exp=NONE",
		"--wrap=x", "--wait", "--gres=gpu:4", "--nodes=9", "--output=/x", "--tasks-per-node=2", "--license=a", "--constraints=x", "--segmnt=4", "--licenses=a\n#SBATCH --qos=x", "--exclusive", "--requeue", "--uid=0",
	}},
	{"signal", []string{"USR1@300", "B:TERM@60", "10", "SIGUSR2@5", "R:usr1@60", "B:USR1"}, []string{"NOSUCH@60", "USR1@", "USR1@99999", "X:USR1@5", "65@5", "@60", "USR1@-5"}},
	{"dependency", []string{"afterok:12", "afterok:1:2,afterany:3", "afterok:12?afterany:13", "after:12+5", "singleton", "aftercorr:7_*", "afterok:12_3,singleton"}, []string{"12", "afterok", "afterok:", "afterok:a", "expand:1", "afterok:1,afterany:2?singleton", ",singleton", "singleton,", "afterok:0", "after:1+"}},
	{"array", []string{"5", "1-10", "1-10%1", "0-15:4", "1,3,5-7%2"}, []string{"1-4%0", "4-1", "1,,2", "1-", "a", "1-4%", "1-4:0", "1-99999999", "-1", "1-4%2%2"}},
	{"begin", []string{"now", "now+60", "now+2hours", "16:00", "4:30PM", "tomorrow", "noon tomorrow", "16:00 12/24/30", "010130", "2030-01-20", "2030-01-20T12:34:00", "teatime", "tomorrow 16:00", "12/24/30-16:00"}, []string{"yesterday", "now-1hour", "25:00", "2030-13-01", "2030-02-30", "now --qos=x", "now+1fortnight"}},
	{"constraint", []string{"h100", "h100&ib", "[rack1|rack2]", "(a&b)|c", "[a100*2&h100*2]"}, []string{"a b", "[a", "a)", "a&", "|a", "a$b", "a*0", "[a*]"}},
	{"nodelist", []string{"gpu1", "gpu[01-04,7],x", "r[1-2]n[1-4]"}, []string{"/etc/hosts", "gpu[3-1]", "gpu[1-99999]", "gpu[1", "gpu1,", "-gpu", "a b", "gpu[1-100][1-101]"}},
	{"hint", []string{"nomultithread"}, []string{"fast"}},
	{"mail_user", []string{"alice", "a.b+c@example.org"}, []string{"a@b@c", "a b@c", "-a@b", "a@b.com\nBcc: c", "<a@b>"}},
	{"mail_type", []string{"END", "begin,end,fail", "TIME_LIMIT_90"}, []string{"SOMETIMES", "END,"}},
	{"comment", []string{`said "go"`, "it's #1 at 100%", `a\b`, "中文"}, []string{"a\nb", "a\tb", "a\u202eb", "a\u0085b", "\x07"}},
	{"worktree", []string{"/w", "/a b/it's", "/数据/x", "/w/"}, []string{"w", "~/w", "/a/../b", "/", "/a\nb", "$HOME/w", "-w"}},
	{"script", []string{"a.py", "examples/a b.py", "/w/a.py"}, []string{"../a.py", "/bin/sh", "-c", "a\x00b"}},
	{"log_dir", []string{"logs", "out/logs", "my logs", "日志", "/scratch/alice/logs", "/home/alice/my logs"}, []string{"/var/log", "/etc/cron.d", "/", "/usr/../x", "/scratch/%u", "../logs", "logs/%j", "logs$USER", `a\b`, "~x", "-x"}},
	{"every", []string{"hourly", "30m", "12h", "2d"}, []string{"sometimes", "0h", "5", "1y"}},
	{"container.image", []string{"nvcr.io#nvidia/pytorch:25.04-py3", "docker://nvcr.io/nvidia/pytorch:25.04-py3", "/img/a b.sqsh", "a@sha256:0f", "./x.sif"}, []string{"../x.sqsh", "-x", "a b", "a;b", "~/x.sif", "$(x)"}},
	{"container.mounts", []string{"/a:/b", "/a:/b:ro", "/data", "/a,/b", "/a:/b,/c:/d:ro,z /e:/f", "/a b:/c"}, []string{"a:b", "/a:b", "/a:/b:ro:x", "/a:/", "/a/../b:/c", "/a:/b,c:/d", "/a:/b /c:/d:/e:/f", "/a:/b:$(x)"}},
	{"container.workdir", []string{"/w"}, []string{"w", "/w/.."}},
	{"env", []string{"A", "_a1", "T_X"}, []string{"1A", "A-B", "a b", "BASH_ENV", "LD_PRELOAD", "PS4", "PATH", "IFS", "SLURM_NNODES", "BASH_FUNC_x%%", "MASTER_PORT", "RUN_DIR", "UID", "$(x)"}},
	{"args", []string{"", "-", "a\nb", "\u202e"}, []string{"a\x00b"}},
	{"srun_args", []string{"--cpu-bind=cores", "--no-label", "--comment=a b"}, []string{"-n4", "bash", "--x y", "--a\n--b"}},
	{"launcher", []string{"uv", "python", "accelerate"}, []string{"torchrun"}},
	{"rdzv.conf", []string{"600", "a.b:1"}, []string{"a,b", "$(x)", "a b"}},
	{"preset", []string{"debug-nccl", "joined-log"}, []string{"no-such", "a b"}},
	{"nodes", []string{"1", "512"}, []string{"0", "-2", "1000000"}},
	{"gpus_per_node", []string{"0", "8"}, []string{"-1", "4096"}},
	{"master_port", []string{"29500"}, []string{"0", "70000"}},
}

func TestEveryFieldHasAGrammar(t *testing.T) {
	for _, g := range grammars {
		for _, v := range g.takes {
			spec, err := set(t, g.field, v)
			if err == nil {
				_, err = job.Render(spec, job.Options{})
			}
			require.NoError(t, err, "%s: %q", g.field, v)
		}
		for _, v := range g.refuses {
			spec, err := set(t, g.field, v)
			if err == nil {
				_, err = job.Render(spec, job.Options{})
			}
			es := job.AsFieldErrors(err)
			require.NotEmpty(t, es, "%s: %q is taken", g.field, v)
			require.Equal(t, strings.Split(g.field, ".")[0], strings.Split(es[0].Field, ".")[0], "%q", v)
			require.NotContains(t, es[0].Error(), "\n", "one line, whatever was given")
			require.NotEmpty(t, es[0].Fix)
		}
	}
}

func TestFieldsThatDoNotGoTogether(t *testing.T) {
	for text, field := range map[string]string{
		"{worktree: /w, array: 1-2, chain: 3}":                       "chain",
		"{worktree: /w, mem: 1G, mem_per_gpu: 1G}":                   "mem_per_gpu",
		"{worktree: /w, cpus_per_task: 8, sbatch: --cpus-per-gpu=8}": "sbatch",
		"{worktree: /w, mem: 1G, sbatch: --mem-per-cpu=8}":           "sbatch",
		"{worktree: /w, gpu_request: gres, sbatch: --gres=nvme:1}":   "sbatch",
		"{worktree: /w, sbatch: [--tmp=1, --tmp=2]}":                 "sbatch",
		"{worktree: /w, every: daily, array: 1-2}":                   "every",
		"{worktree: /w, launcher: custom}":                           "launcher_argv",
		"{worktree: /w, launcher_argv: [a]}":                         "launcher_argv",
		"{worktree: /w, container: {runtime: docker}}":               "container.image",
		"{worktree: /w, container: {image: a}}":                      "container.runtime",
		"{worktree: '/w:x', container: {runtime: docker, image: a}}": "worktree",
		"{name: a}": "worktree",
		"{worktree: /w, container: {runtime: docker, image: a}, script: ../x}":         "script",
		"{worktree: /w, container: {runtime: docker, image: a}, args: ['a', \"\\0\"]}": "args",
	} {
		spec, err := job.Decode([]byte(text))
		require.NoError(t, err, text)
		es := spec.Validate()
		require.Len(t, es, 1, text)
		require.Equal(t, field, es[0].Field)
	}
}

func TestEveryFieldIsDocumentedInBothLanguages(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range job.Fields() {
		require.NotEmpty(t, f.Doc.EN, f.Name)
		require.NotEmpty(t, f.Doc.ZH, f.Name)
		require.NotEmpty(t, f.Example, f.Name)
		require.False(t, seen[f.Name])
		seen[f.Name] = true
	}
	require.Greater(t, len(seen), 50)
	props := job.Schema()["properties"].(map[string]any)
	require.Equal(t, "integer", props["nodes"].(map[string]any)["type"])
	require.Contains(t, props["container"].(map[string]any)["properties"], "mounts")
}

// A retry for a word that no diagnosis gives would never happen.
func TestARetryNamesFailureClasses(t *testing.T) {
	s := job.Spec{Worktree: "/w", Retry: job.Retry{On: []string{"nccl_timeout", "node-failure", "slurm_node_fial", "success"}}}
	var wrong []string
	for _, e := range s.Validate() {
		wrong = append(wrong, e.Field+" "+e.Value+" "+e.Msg.EN)
	}
	require.Equal(t, []string{
		"retry.on node-failure is not one of the allowed words",
		"retry.on slurm_node_fial is not one of the allowed words; did you mean slurm_node_fail?",
		"retry.on success is not one of the allowed words",
	}, wrong)
}
