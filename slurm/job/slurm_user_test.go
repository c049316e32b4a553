package job_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/job"
	"github.com/megatron-ops/megatron-ops/slurm/slurmtest"
)

// A slurmUser is alice on a real Slurm cluster, with her worktree. The tests of this
// package share the cluster.
type slurmUser struct {
	*slurmtest.Cluster
	t    *testing.T
	tree string
}

// mails is the program that Slurm runs in place of mail(1) in these tests.
const mails = "/tmp/megatron-ops-test-mail"

func onSlurm(t *testing.T) slurmUser {
	t.Helper()
	if slurmtest.Missing() == "" && !testing.Short() {
		require.NoError(t, os.WriteFile(mails, []byte("#!/bin/sh\necho \"$@\" >>"+mails+".sent\n"), 0o755))
	}
	real := slurmtest.Start(t, slurmtest.Options{Conf: "MailProg=" + mails + "\n"})
	tree, err := os.MkdirTemp(real.Work, "alice-")
	require.NoError(t, err)
	d := slurmUser{real, t, tree}
	d.file("pretrain_gpt.py", trainer)
	d.file(".venv/bin/python", "#!/bin/sh\nexec python3 \"$@\"\n")
	_, err = real.Run(t.Context(), "chown", "-R", "alice", tree)
	require.NoError(t, err)
	return d
}

// trainer imitates Megatron as far as Slurm is concerned: it runs until it receives the
// signal of its flags, and then saves and ends. Its first line of output shows that it now
// handles the signal.
const trainer = `import os, signal, sys, time
asked = []
if "--exit-signal-handler" in sys.argv:
    signal.signal(getattr(signal, sys.argv[sys.argv.index("--exit-signal") + 1]), lambda *_: asked.append(1))
os.write(1, f"argv {sys.argv[1:]} on {os.environ.get('SLURMD_NODENAME')} sees {os.environ.get('CUDA_VISIBLE_DEVICES')}\n".encode())
end = time.time() + float(os.environ.get("T_SECONDS", "0"))
while time.time() < end:
    time.sleep(0.1)
    if asked:
        os.write(1, b"saved before the end\n")
        sys.exit(0)
sys.exit(int(os.environ.get("T_EXIT", "0")))
`

func (d slurmUser) file(name, text string) {
	path := filepath.Join(d.tree, name)
	require.NoError(d.t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(d.t, os.WriteFile(path, []byte(text), 0o755))
}

// spec returns a job of one node that starts Python directly, with changes.
func (d slurmUser) spec(name string, change ...func(*job.Spec)) job.Spec {
	s := job.Spec{
		Name: name, Worktree: d.tree, Nodes: new(1), GPUsPerNode: new(1), Time: "5", Partition: "prod", Guards: new(false), Monitor: new(false),
		Launcher: job.Custom, LauncherArgv: []string{"python3"}, Env: map[string]string{},
	}
	for _, c := range change {
		c(&s)
	}
	return s
}

// submit renders a job and submits it as alice.
func (d slurmUser) submit(s job.Spec, words ...string) string {
	d.t.Helper()
	id, err := d.try(s, job.Options{}, words...)
	require.NoError(d.t, err)
	return id
}

func (d slurmUser) try(s job.Spec, o job.Options, words ...string) (string, error) {
	d.t.Helper()
	script, err := job.Render(s, o)
	require.NoError(d.t, err)
	file := filepath.Join(d.tree, s.Name+".sbatch")
	require.NoError(d.t, os.WriteFile(file, []byte(script.Text), 0o644))
	_, err = d.RunAs(d.t.Context(), "alice", "mkdir", "-p", filepath.Join(script.WorkDir, script.LogDir))
	require.NoError(d.t, err)
	out, err := d.RunAs(d.t.Context(), "alice", append(append([]string{"env", "-C", d.tree, "sbatch", "--parsable"}, words...), file)...)
	if err == nil {
		d.t.Cleanup(func() { _, _ = d.Run(context.Background(), "scancel", out) })
	}
	return out, err
}

// show returns one field of a job from scontrol.
func (d slurmUser) show(id, field string) string {
	d.t.Helper()
	out, err := d.Run(d.t.Context(), "scontrol", "show", "job", "-o", id)
	require.NoError(d.t, err)
	m := regexp.MustCompile(`(?:^|\s)` + field + `=(\S*)`).FindStringSubmatch(out)
	if m == nil {
		return ""
	}
	return m[1]
}

func (d slurmUser) becomes(id string, states ...string) {
	d.t.Helper()
	deadline := time.Now().Add(100 * time.Second)
	for time.Now().Before(deadline) {
		if now := d.show(id, "JobState"); regexp.MustCompile(`^(?:` + strings.Join(states, "|") + `)$`).MatchString(now) {
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
	d.t.Fatalf("job %s is %s (%s), not %v\n%s", id, d.show(id, "JobState"), d.show(id, "Reason"), states, d.logs())
}

// log returns the text of one log, as soon as the text contains want.
func (d slurmUser) log(name, want string) string {
	d.t.Helper()
	var text []byte
	require.Eventually(d.t, func() bool {
		text, _ = os.ReadFile(filepath.Join(d.tree, "logs", name))
		return strings.Contains(string(text), want)
	}, 30*time.Second, 100*time.Millisecond, "%s lacks %q\n%s", name, want, d.logs())
	return string(text)
}

func (d slurmUser) logs() string {
	var b strings.Builder
	files, _ := filepath.Glob(filepath.Join(d.tree, "logs", "*.*"))
	for _, f := range files {
		text, _ := os.ReadFile(f)
		fmt.Fprintf(&b, "== %s\n%s\n", filepath.Base(f), text)
	}
	return b.String()
}

func (d slurmUser) as(words ...string) string {
	d.t.Helper()
	out, err := d.RunAs(d.t.Context(), "alice", words...)
	require.NoError(d.t, err)
	return out
}
