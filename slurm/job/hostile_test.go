package job_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// hostile are values that try to make a shell, sbatch or a container's command line do
// more than pass on text. A value that is executed creates the canary file. The last
// values are harmless ones that people write.
var hostile = []string{
	// substitutions
	`$(touch "$CANARY")`, "`touch \"$CANARY\"`", `$(<"$CANARY")`, `x$(touch "$CANARY")y`, `$( touch "$CANARY" )`, `$(touch ${CANARY})`,
	`${x:-$(touch "$CANARY")}`, `${x:=$(touch "$CANARY")}`, `${x:?$(touch "$CANARY")}`, `${x/$(touch "$CANARY")/}`, `${!x}$(touch "$CANARY")`,
	`$((a[$(touch "$CANARY")]))`, `a[$(touch "$CANARY")]`, `$[a[$(touch "$CANARY")]]`, `x[0$(touch "$CANARY")]=1`, `<(touch "$CANARY")`, `>(touch "$CANARY")`,
	// escapes from quotes
	`'; touch "$CANARY"; '`, `"; touch "$CANARY"; "`, `'$(touch "$CANARY")'`, `'"$(touch "$CANARY")"'`, `"'$(touch "$CANARY")'"`, `'\''; touch "$CANARY"; '\''`,
	`\'; touch "$CANARY" #`, `\\'; touch "$CANARY" #`, `$'\'; touch "$CANARY" #'`, `\"; touch "$CANARY" #`, `" || touch "$CANARY" || "`, `')"; touch "$CANARY"; ("'`,
	"'\n  ' _; touch \"$CANARY\"; '", `"}; touch "$CANARY"; {"`, `')' ; touch "$CANARY"`, `"` + "`touch \"$CANARY\"`" + `"`,
	// further commands
	`; touch "$CANARY"`, `&& touch "$CANARY"`, `|| touch "$CANARY"`, `| touch "$CANARY"`, `|& touch "$CANARY"`, `& touch "$CANARY" &`, "\ntouch \"$CANARY\"\n", "x\r\ntouch \"$CANARY\"\r\n",
	`> "$CANARY"`, `>> "$CANARY"`, `&> "$CANARY"`, `2> "$CANARY"`, `{ touch "$CANARY"; }`, `( touch "$CANARY" )`, `exec touch "$CANARY"`, `eval touch "$CANARY"`, `coproc touch "$CANARY"`,
	`() { :; }; touch "$CANARY"`, `fi; touch "$CANARY"; if true`, `done; touch "$CANARY"`, `esac; touch "$CANARY"`, `trap 'touch "$CANARY"' EXIT`,
	// here-documents and comments
	"EOF\ntouch \"$CANARY\"\nEOF", "\nEOF\ntouch \"$CANARY\"\ncat <<EOF", "<<EOF\n$(touch \"$CANARY\")\nEOF", "<<<$(touch \"$CANARY\")", "# \ntouch \"$CANARY\"", "x # $(touch \"$CANARY\")",
	// directives and options of the scheduler
	"\n#SBATCH --wrap=touch", "x\n#SBATCH --output=/tmp/x\n", "#SBATCH --qos=urgent", "x --qos=urgent", "x\t--qos=urgent", "x\n#PBS -N y", "x\n#SBATCH hetjob\n#SBATCH --nodes=9", "x\" --qos=\"urgent", `x' --qos='urgent`, `x \ --qos=urgent`,
	"--wrap=touch", "-w/etc/passwd", "--export=ALL,BASH_ENV=/x", "-", "--", "-x", "--help", "-c", "-e", "--entrypoint=sh", "-v=/:/host", "--privileged",
	// variables of the script, and placeholders
	`$1`, `$@`, `"$@"`, `${@}`, `$*`, `$0`, `$$`, `$!`, `$-`, `$_`, `"${ARGS[@]}"`, `$GUARDS`, `$MARK$(touch "$CANARY")`, `$SLURM_JOB_ID`, `$HOME`, `~`, `~root`, `~+/x`,
	`{node_rank}$(touch "$CANARY")`, `{master_addr}; touch "$CANARY"`, `{nnodes}{nnodes}`, `{hostfile}`, `{}`, `{a,b}`, `{1..9}`, `%j`, `%x-%N`, `%%`, `%n%s%p%d`, `\0`, `\x00`, `\n`, `\c`, `\u0000`,
	// globs and history
	`*`, `?`, `[a-z]*`, `**/*`, `@(a|b)`, `!(x)`, `!touch`, `!!`, `!$`, `^a^b`, `/*`, `./*`,
	// characters that look like others or are invisible
	"\u202e$(touch \"$CANARY\")", "a\u2028touch \"$CANARY\"", "a\u0085touch \"$CANARY\"", "a\u00a0b", "a\u200bb", "\ufeffx", "е", "ａ；touch", "‘$(touch \"$CANARY\")’", "é", "e\u0301", "中文 参数", "🙂", "\x7f", "\x01\x02", "\x1b[31mred\x1b]0;x\a", "\t", " ", "  a  b  ",
	"\v\f", "\\", "'", `"`, "`", "$", ";", "|", "&", "<", ">", "(", ")", "!", "#", "%", "=", ",", ":", "''", `""`,
	// harmless values that people write
	"", "a b", "it's", `say "hi"`, "100%", "a=b", "k=v,w=x", "3e-4", "1.0", "-1", "[1, 2]", `{"a": [1, "b c"]}`, "s3://bucket/a?b=c&d=e", "C:\\dir\\new", "a/b:c@d", "50%\\50%", "$5", "R&D", "x*y", "a;b", "<pad>", "##", "~5%", "two\nlines",
}

// withHostileValues adds every hostile value to s wherever the program must receive it
// whole: its arguments, its environment and the words of a custom launcher.
func withHostileValues(s job.Spec) job.Spec {
	s.Env = map[string]string{}
	for i, v := range hostile {
		s.Args = append(s.Args, v)
		s.Env[fmt.Sprintf("T_V%03d", i)] = v
	}
	if s.Launcher == job.Custom {
		s.LauncherArgv = append([]string{"mylauncher", "--"}, hostile...)
	}
	if s.Container.Runtime != "" {
		s.Container.Env = map[string]string{}
		for i, v := range hostile {
			s.Container.Env[fmt.Sprintf("T_C%03d", i)] = v
		}
	}
	return s
}

// requireArrived requires that a rank received all values of withHostileValues whole.
func requireArrived(t *testing.T, s job.Spec, c call) {
	t.Helper()
	require.Equal(t, append([]string{"pretrain_gpt.py"}, s.Args...), c.Argv[len(c.Argv)-len(s.Args)-1:])
	for name, v := range s.Env {
		require.Equal(t, v, c.Env[name], name)
	}
	for name, v := range s.Container.Env {
		require.Equal(t, v, c.Env[name], name)
	}
}

func TestHostileValuesArriveWholeInEveryRuntimeAndLauncher(t *testing.T) {
	t.Parallel()
	require.GreaterOrEqual(t, len(hostile), 150)
	for r, runtime := range []string{"", job.Pyxis, job.Enroot, job.Singularity, job.Apptainer, job.Docker} {
		for l, launcher := range []string{job.UV, job.Python, job.Accelerate, job.Custom} {
			if testing.Short() && (r+l)%3 != 0 {
				continue // each runtime and each launcher at least once
			}
			t.Run(runtime+"/"+launcher, func(t *testing.T) {
				t.Parallel()
				s := twoNodes()
				s.Launcher = launcher
				if runtime != "" {
					s.Container = job.Container{Runtime: runtime, Image: "/images/a.sqsh"}
				}
				s = withHostileValues(s)
				r := execute(t, s, job.Options{})
				require.Zero(t, r.code, r.output)
				ranks := r.of("python")
				if launcher == job.Custom {
					ranks = r.of("mylauncher")
				}
				require.Len(t, ranks, 2, r.output)
				for node, c := range ranks {
					requireArrived(t, s, c)
					if launcher == job.Custom {
						fill := strings.NewReplacer("{node_rank}", fmt.Sprint(node), "{nnodes}", "2", "{master_addr}", "node0", "{hostfile}", c.Env["HOSTFILE"])
						for i, v := range hostile {
							require.Equal(t, fill.Replace(v), c.Argv[i+1])
						}
					}
				}
			})
		}
	}
}

func TestHostileValuesArriveWholeInEveryForm(t *testing.T) {
	t.Parallel()
	for form, change := range map[string]func(*job.Spec){
		"a chain":        func(s *job.Spec) { s.Chain = new(3) },
		"a series":       func(s *job.Spec) { s.Every = "daily" },
		"an array":       func(s *job.Spec) { s.Array = "1-3%1" },
		"a signal":       func(s *job.Spec) { s.Signal = "B:USR1@60" },
		"a kill switch":  func(s *job.Spec) { s.KillSwitch = "STOP" },
		"a node check":   func(s *job.Spec) { s.NodeCheck = new(true) },
		"c10d":           func(s *job.Spec) { s.Rdzv.Backend = "c10d" },
		"joined":         func(s *job.Spec) { s.Preset = []string{"joined-log", "debug-nccl"} },
		"apart":          func(s *job.Spec) { s.Preset = []string{"per-node-logs"} },
		"without guards": func(s *job.Spec) { s.Guards, s.Monitor = new(false), new(false) },
		"without GPUs":   func(s *job.Spec) { s.GPUsPerNode = new(0) },
	} {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			if testing.Short() && !slices.Contains([]string{"a signal", "a node check", "joined", "without guards"}, form) {
				t.Skip("without -short: the ranks are started by the same words")
			}
			s := withHostileValues(twoNodes())
			change(&s)
			r := execute(t, s, job.Options{})
			require.Zero(t, r.code, r.output)
			ranks := r.of("python")
			require.GreaterOrEqual(t, len(ranks), 2)
			for _, c := range ranks[len(ranks)-2:] {
				if form == "a signal" || form == "a kill switch" { // drop the flags of the signal handler
					c.Argv = c.Argv[:len(c.Argv)-3]
				}
				requireArrived(t, s, c)
			}
		})
	}
	t.Run("a step", func(t *testing.T) {
		t.Parallel()
		root := t.TempDir()
		s := withHostileValues(twoNodes())
		s.Worktree = filepath.Join(root, "tree")
		script, err := job.IntoStep(s, job.Options{}, "4711")
		require.NoError(t, err)
		r := executeScript(t, root, script)
		require.Zero(t, r.code, r.output)
		require.Len(t, r.of("python"), 2)
		requireArrived(t, s, r.of("python")[1])
	})
	t.Run("the bare skeleton", func(t *testing.T) {
		t.Parallel()
		s := withHostileValues(twoNodes())
		r := execute(t, s, job.Options{Minimal: true})
		requireArrived(t, s, r.of("python")[1])
	})
	for _, runtime := range []string{"", job.Docker, job.Singularity, job.Enroot} {
		t.Run("by hand/"+runtime, func(t *testing.T) {
			t.Parallel()
			s := twoNodes()
			if runtime != "" {
				s.Container = job.Container{Runtime: runtime, Image: "/images/a.sqsh"}
			}
			s = withHostileValues(s)
			commands, err := job.ForShell(s, job.Options{}, nil)
			require.NoError(t, err)
			canary := filepath.Join(t.TempDir(), "canary")
			for _, command := range commands {
				calls := typeIn(t, "export CANARY="+canary+"\n"+strings.ReplaceAll(command, "/shared/tree", t.TempDir()))
				requireArrived(t, s, calls[len(calls)-1])
				require.NoFileExists(t, canary)
			}
		})
	}
}

// A hostile path is used literally, or Render rejects it and names the field.
func TestHostilePathsArePathsOrRefused(t *testing.T) {
	t.Parallel()
	fields := map[string]func(s *job.Spec, v string){
		"worktree":          func(s *job.Spec, v string) { s.Worktree = filepath.Join(s.Worktree, v) },
		"script":            func(s *job.Spec, v string) { s.Script = v },
		"venv":              func(s *job.Spec, v string) { s.Venv, s.Launcher = v, job.UV },
		"log_dir":           func(s *job.Spec, v string) { s.LogDir = v },
		"train":             func(s *job.Spec, v string) { s.Train, s.Array = v, "1-2" },
		"kill_switch":       func(s *job.Spec, v string) { s.KillSwitch = v },
		"artifact.path":     func(s *job.Spec, v string) { s.Artifact.Path = v },
		"container.image":   func(s *job.Spec, v string) { s.Container = job.Container{Runtime: job.Docker, Image: v} },
		"container.workdir": func(s *job.Spec, v string) { s.Container = job.Container{Runtime: job.Docker, Image: "a", Workdir: v} },
		"container.mounts": func(s *job.Spec, v string) {
			s.Container = job.Container{Runtime: job.Singularity, Image: "a", Mounts: job.Mounts{v}}
		},
	}
	some := 29 // every value is validated and parsed, one of so many is run
	if testing.Short() {
		some *= 20
	}
	var ran, refused atomic.Int64
	t.Cleanup(func() {
		t.Logf("%d were run, %d refused", ran.Load(), refused.Load())
		require.Greater(t, ran.Load(), int64(25*29/some))
		require.Greater(t, refused.Load(), int64(200))
	})
	for field, give := range fields {
		t.Run(field, func(t *testing.T) {
			t.Parallel()
			base := t.TempDir()
			for i, v := range hostile {
				if v == "" {
					continue
				}
				root := filepath.Join(base, fmt.Sprint(i))
				for k, value := range []string{v, filepath.Join("/x", v)} {
					s := twoNodes()
					s.Worktree = filepath.Join(root, "tree")
					give(&s, value)
					script, err := job.Render(s, job.Options{})
					if err != nil {
						require.Equal(t, field, job.AsFieldErrors(err)[0].Field, "%q: %v", value, err)
						refused.Add(1)
						continue
					}
					if (i+k)%some != 0 {
						requireParses(t, script.Text)
						continue
					}
					if s.Train != "" {
						require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(s.Worktree, s.Train)), 0o755))
					}
					r := executeScript(t, filepath.Join(root, fmt.Sprint(k)), script)
					require.NotEqual(t, 127, r.code, "%q: %s", value, r.output)
					ran.Add(1)
					if field == "script" {
						require.Contains(t, r.of("python")[0].Argv, value)
					}
				}
			}
		})
	}
}

// A hostile value of a scheduler's field changes no other directive, or Render rejects it
// and names the field.
func TestHostileValuesChangeNoOtherDirective(t *testing.T) {
	t.Parallel()
	fields := map[string]func(s *job.Spec, v string){
		"name": func(s *job.Spec, v string) { s.Name = v }, "account": func(s *job.Spec, v string) { s.Account = v },
		"partition": func(s *job.Spec, v string) { s.Partition = v }, "qos": func(s *job.Spec, v string) { s.QOS = v },
		"reservation": func(s *job.Spec, v string) { s.Reservation = v }, "constraint": func(s *job.Spec, v string) { s.Constraint = v },
		"gpu_request": func(s *job.Spec, v string) { s.GPURequest = v }, "gpu": func(s *job.Spec, v string) { s.GPU = v },
		"mem": func(s *job.Spec, v string) { s.Mem = v }, "time": func(s *job.Spec, v string) { s.Time = v }, "hint": func(s *job.Spec, v string) { s.Hint = v },
		"nodelist": func(s *job.Spec, v string) { s.Nodelist = v }, "exclude": func(s *job.Spec, v string) { s.Exclude = v },
		"dependency": func(s *job.Spec, v string) { s.Dependency = v }, "begin": func(s *job.Spec, v string) { s.Begin = v },
		"array": func(s *job.Spec, v string) { s.Array = v }, "every": func(s *job.Spec, v string) { s.Every = v },
		"signal": func(s *job.Spec, v string) { s.Signal = v }, "comment": func(s *job.Spec, v string) { s.Comment = v },
		"mail_user": func(s *job.Spec, v string) { s.MailUser = v }, "mail_type": func(s *job.Spec, v string) { s.MailType = v },
		"cluster": func(s *job.Spec, v string) { s.Cluster = v }, "team": func(s *job.Spec, v string) { s.Team = v },
		"launcher": func(s *job.Spec, v string) { s.Launcher = v }, "rdzv.backend": func(s *job.Spec, v string) { s.Rdzv.Backend = v },
		"container.runtime": func(s *job.Spec, v string) { s.Container = job.Container{Runtime: v, Image: "a"} },
		"preset":            func(s *job.Spec, v string) { s.Preset = []string{v} }, "retry.on": func(s *job.Spec, v string) { s.Retry.On = []string{v} },
		"srun_args": func(s *job.Spec, v string) { s.SrunArgs = []string{v} },
		"rdzv.conf": func(s *job.Spec, v string) { s.Rdzv.Conf = map[string]string{"join_timeout": v} },
		"env":       func(s *job.Spec, v string) { s.Env = map[string]string{v: "x"} },
	}
	taken := map[string]string{
		"name": "a", "account": "a", "partition": "a", "qos": "a", "reservation": "a", "constraint": "a", "gpu_request": "gres", "gpu": "h100", "mem": "1", "time": "1",
		"hint": "nomultithread", "nodelist": "a", "exclude": "a", "dependency": "singleton", "begin": "now", "array": "1", "every": "daily", "signal": "USR1", "comment": "a",
		"mail_user": "a", "mail_type": "END", "launcher": "python", "rdzv.backend": "c10d", "container.runtime": "docker", "preset": "offline", "retry.on": "hang", "srun_args": "--x", "rdzv.conf": "1", "env": "T_X",
	}
	names := func(s job.Spec) ([]string, string) {
		script, err := job.Render(s, job.Options{})
		require.NoError(t, err)
		options, err := slurm.ReadDirectives(script.Text)
		require.NoError(t, err)
		var all []string
		for _, o := range options {
			all = append(all, o.Name)
		}
		return all, script.Text
	}
	accepted, some := 0, 8 // every value is validated and parsed, one of so many is run
	if testing.Short() {
		some *= 16
	}
	for field, give := range fields {
		harmless := twoNodes()
		give(&harmless, cmp.Or(taken[field], "a"))
		want, _ := names(harmless)
		for _, v := range hostile {
			if v == "" {
				continue
			}
			s := twoNodes()
			give(&s, v)
			if _, err := job.Render(s, job.Options{}); err != nil {
				require.True(t, strings.HasPrefix(job.AsFieldErrors(err)[0].Field, field), "%q: %v", v, err)
				continue
			}
			got, text := names(s)
			if field == "env" || field == "gpu" {
				continue
			}
			require.Equal(t, want, got, "%s: %q", field, v)
			requireParses(t, text)
			accepted++
			if (field == "srun_args" || field == "comment") && accepted%some == 0 {
				execute(t, s, job.Options{})
			}
		}
	}
	require.Greater(t, accepted, 100, "comments and options of srun take most of them")
	for _, name := range []string{"BASH_ENV", "ENV", "PS4", "IFS", "LD_PRELOAD", "BASH_FUNC_x%%", "BASH_FUNC_ls()", "PROMPT_COMMAND", "SHELLOPTS", "SLURM_JOB_ID", "PATH", "A B", "A=B", "A;B", "A$(x)", "-A", "Ä", "A\nB", "A[0]", "1A", "GIT_SSH_COMMAND", "PYTHONSTARTUP", "ARGS", "GUARDS"} {
		s := twoNodes()
		s.Env = map[string]string{name: "x"}
		_, err := job.Render(s, job.Options{})
		require.Error(t, err, name)
	}
}

func requireParses(t *testing.T, script string) {
	t.Helper()
	_, err := parsed(script)
	require.NoError(t, err, script)
}

// Encode, Decode and Import keep hostile values.
func TestHostileValuesComeBackFromTheSpecification(t *testing.T) {
	s := withHostileValues(twoNodes())
	for name, v := range s.Env {
		if v == "" || strings.ContainsAny(v, "\ufeff") {
			delete(s.Env, name)
		}
	}
	s.Args = slices.DeleteFunc(s.Args, func(v string) bool { return strings.ContainsRune(v, '\ufeff') })
	again, err := job.Decode(job.Encode(s))
	require.NoError(t, err)
	require.Equal(t, s, again)
	script, err := job.Render(s, job.Options{})
	require.NoError(t, err)
	back, _ := job.Import("x", []byte(script.Text))
	require.Equal(t, s.Args, back.Args)
	for name, v := range s.Env {
		require.Equal(t, v, back.Env[name], name)
	}
}
