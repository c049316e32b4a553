package job_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// tools are the system programs that a rendered script uses. The ranks start even if a
// program is missing that the launch itself does not need.
var tools = strings.Fields("bash sh env stat mkdir tee grep sort cut sha256sum head cat sleep date find sed rm mv git tail timeout")

// pathWithout returns a PATH with the stand-ins and tools, except the missing ones.
func pathWithout(t *testing.T, missing ...string) string {
	t.Helper()
	bin := t.TempDir()
	self, err := os.Executable()
	require.NoError(t, err)
	link := func(from, name string) {
		if !slices.Contains(missing, name) {
			require.NoError(t, os.Symlink(from, filepath.Join(bin, name)))
		}
	}
	for _, name := range standIns {
		link(self, name)
	}
	for _, name := range tools {
		path, err := exec.LookPath(name)
		require.NoError(t, err)
		link(path, name)
	}
	return "PATH=" + bin
}

// noSleep adds a sleep that returns at once to a folder of the PATH.
func noSleep(t *testing.T, bin string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(bin, "sleep"), []byte("#!/bin/sh\nexit 0\n"), 0o755))
}

func warnings(r run) []string {
	var found []string
	for line := range strings.Lines(r.output) {
		if strings.HasPrefix(line, "guard: warning: ") {
			found = append(found, line)
		}
	}
	return found
}

func TestAMissingToolIsOneWarningAndTheJobGoesOn(t *testing.T) {
	t.Parallel()
	python := func(s *job.Spec) { s.Launcher = job.Python }
	plain := warnings(execute(t, twoNodes(), job.Options{}))
	for name, c := range map[string]struct {
		missing string
		change  func(*job.Spec)
		says    string
		each    bool // every node prints the line
	}{
		"nvidia-smi": {"nvidia-smi", python, "nvidia-smi does not say which GPUs are free", true},
		"getent":     {"getent", python, "does not resolve, or getent is missing", false},
		"git":        {"git", python, "git is missing, or", false},
		"uv":         {"uv", func(*job.Spec) {}, "uv is not on the PATH", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := twoNodes()
			c.change(&s)
			settings := []string{pathWithout(t, c.missing)}
			if c.missing == "uv" {
				// The node's shell goes on after the warning, but cannot start uv.
				r := execute(t, s, job.Options{}, settings...)
				require.Equal(t, 127, r.code, r.output)
				require.Equal(t, 2, strings.Count(r.output, c.says), r.output)
				return
			}
			r := execute(t, s, job.Options{}, settings...)
			require.Zero(t, r.code, r.output)
			require.Len(t, r.of("python"), 2)
			want := 1
			if c.each {
				want = 2
			}
			require.Equal(t, want, strings.Count(r.output, c.says), r.output)
			require.NotContains(t, r.output, "command not found")
			require.LessOrEqual(t, len(warnings(r)), len(plain)+want, r.output)
		})
	}
}

func TestAnUnresolvableNameIsOneWarningAndTheJobGoesOn(t *testing.T) {
	t.Parallel()
	r := execute(t, twoNodes(), job.Options{})
	require.Zero(t, r.code, r.output)
	require.Equal(t, 1, strings.Count(r.output, "node0 does not resolve, or getent is missing"), "no such host here: %s", r.output)
	require.Len(t, r.of("python"), 2)
}

func TestAFirstNodeOutOfReachIsOneWarning(t *testing.T) {
	t.Parallel()
	s := twoNodes()
	s.Monitor = new(false)
	// The ranks of the node that cannot reach the first one run until the warning.
	s.Launcher, s.LauncherArgv = job.Custom, []string{"bash", "-c", `[[ $SLURM_NODEID == 0 ]] || until grep -q "no answer" "$HOME/output"; do /bin/sleep 0.1; done`, "_"}
	s.MasterPort = new(19541) // below the ports that tests and the system assign
	path := pathWithout(t, "sleep", "scontrol")
	bin := strings.TrimPrefix(path, "PATH=")
	require.NoError(t, os.WriteFile(filepath.Join(bin, "scontrol"), []byte("#!/bin/sh\necho localhost\n"), 0o755))
	noSleep(t, bin)
	r := execute(t, s, job.Options{}, path)
	require.Zero(t, r.code, r.output)
	require.Equal(t, 1, strings.Count(r.output, "guard: warning: node1: no answer from localhost port 19541 for two minutes"), r.output)
}

func TestAPathThatOnlyLooksLocalIsAWarning(t *testing.T) {
	t.Parallel()
	s := twoNodes()
	s.Monitor = new(false)
	bin := strings.TrimPrefix(pathWithout(t, "stat"), "PATH=")
	require.NoError(t, os.WriteFile(filepath.Join(bin, "stat"), []byte("#!/bin/sh\necho tmpfs\n"), 0o755))
	r := execute(t, s, job.Options{}, "PATH="+bin)
	require.Zero(t, r.code, r.output)
	require.Equal(t, 1, strings.Count(r.output, "looks local to this node"), r.output)
	require.Len(t, r.of("python"), 2)
	require.NoError(t, os.WriteFile(filepath.Join(bin, "stat"), []byte("#!/bin/sh\necho lustre\n"), 0o755))
	require.NotContains(t, execute(t, s, job.Options{}, "PATH="+bin).output, "looks local")
}

// The job stops on a node that does not see a path which the first node sees: the data,
// the checkpoint, the tokenizer, or a file that the script has just written to the logs.
func TestWhatOneNodeDoesNotSeeStopsTheJob(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args []string
		hide func(r string) string
	}{
		"data":       {[]string{"--data-path", "0.5", "@/data/a", "0.5", "@/data/b"}, func(root string) string { return root + "/data/b.idx" }},
		"checkpoint": {[]string{"--load=@/ckpt"}, func(root string) string { return root + "/ckpt" }},
		"tokenizer":  {[]string{"--tokenizer-model", "@/tok.model"}, func(root string) string { return root + "/tok.model" }},
		"logs":       {nil, func(root string) string { return root + "/tree/logs/42/attempt-0/seen" }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			for _, f := range []string{"data/a.idx", "data/b.idx", "ckpt/x", "tok.model"} {
				require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, f)), 0o755))
				require.NoError(t, os.WriteFile(filepath.Join(root, f), nil, 0o644))
			}
			s := twoNodes()
			s.Monitor = new(name == "logs")
			for _, a := range c.args {
				s.Args = append(s.Args, strings.ReplaceAll(a, "@", root))
			}
			s.Worktree = filepath.Join(root, "tree")
			script, err := job.Render(s, job.Options{})
			require.NoError(t, err)
			path := "PATH=" + filepath.Join(root, "hide") + ":" + strings.TrimPrefix(pathWithout(t), "PATH=")
			// The path is gone when the second node's shell starts.
			require.NoError(t, os.MkdirAll(filepath.Join(root, "hide"), 0o755))
			noSleep(t, filepath.Join(root, "hide"))
			hidden := c.hide(root)
			srun := "#!/bin/bash\nfor n in 0 1; do\n  [[ $n == 0 ]] || mv '" + hidden + "' '" + hidden + ".away'\n" +
				"  SLURM_NODEID=$n SLURMD_NODENAME=node$n \"${@:" + srunWords(script.Text) + "}\" || exit\ndone\n"
			require.NoError(t, os.WriteFile(filepath.Join(root, "hide", "srun"), []byte(srun), 0o755))
			r := executeScript(t, root, script, path)
			require.Equal(t, 3, r.code, r.output)
			require.Contains(t, r.output, "guard: stop: node1: "+hidden+" is seen by the first node and not here")
			require.Len(t, r.of("python"), 1, "the second node starts nothing")
		})
	}
}

// srunWords returns the position of the command among the words of the launch.
func srunWords(script string) string {
	line := script[strings.LastIndex(script, "\nsrun ")+1:]
	line, _, _ = strings.Cut(line, "\n")
	return string(rune('0' + strings.Count(line, "--") + 1))
}

// The script looks for the image on every node and pulls a missing image. The job ends
// before any rank starts if a node neither has the image nor can pull it.
func TestTheImageIsThereOnEveryNodeOrTheJobStops(t *testing.T) {
	t.Parallel()
	docker := func(answers string) string {
		bin := strings.TrimPrefix(pathWithout(t, "docker"), "PATH=")
		text := "#!/bin/bash\necho \"$SLURM_NODEID $*\" >>\"$STANDIN_LOG.docker\"\n" + answers + "\n"
		require.NoError(t, os.WriteFile(filepath.Join(bin, "docker"), []byte(text), 0o755))
		return "PATH=" + bin
	}
	s := twoNodes()
	s.Launcher, s.Monitor = job.Python, new(false)
	s.Container = job.Container{Runtime: job.Docker, Image: "megatron:dev"}
	for name, c := range map[string]struct {
		path string
		code int
		says string
	}{
		"there":               {docker("exit 0"), 0, ""},
		"pulled on one":       {docker("[[ $1$2 == imageinspect && $SLURM_NODEID == 1 ]] && exit 1; exit 0"), 0, ""},
		"cannot be pulled":    {docker("[[ $SLURM_NODEID == 0 ]] || [[ $1 == run ]]"), 3, "guard: stop: node1: image megatron:dev is neither here nor can be pulled"},
		"docker is not there": {pathWithout(t, "docker"), 0, "guard: warning: node0: docker is not on the PATH"},
	} {
		t.Run(name, func(t *testing.T) {
			r := execute(t, s, job.Options{}, c.path)
			require.Equal(t, c.code, r.code, r.output)
			require.Contains(t, r.output, c.says)
			calls, _ := os.ReadFile(filepath.Join(filepath.Dir(r.dir), "calls.docker"))
			require.Equal(t, name == "pulled on one" || c.code == 3, strings.Contains(string(calls), "1 pull --quiet megatron:dev"))
			require.False(t, c.code == 3 && strings.Contains(string(calls), " run "), "no rank was started")
		})
	}

	root := t.TempDir()
	image := filepath.Join(root, "megatron.sqsh")
	s.Container = job.Container{Runtime: job.Singularity, Image: image}
	r := execute(t, s, job.Options{})
	require.Zero(t, r.code, r.output)
	require.Contains(t, r.output, "image "+image+" is not here", "a doubt, where the first node sees no image either")
	require.NoError(t, os.WriteFile(image, nil, 0o644))
	require.NotContains(t, execute(t, s, job.Options{}).output, "image")
}
