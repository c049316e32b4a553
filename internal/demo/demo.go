package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/shellword"
)

// A Tour demonstrates the main job on the embedded back end.
type Tour struct {
	// Do runs one command line of the program, prints to out, and returns its exit
	// code.
	Do func(ctx context.Context, args []string, out io.Writer) int
	// Self is this program's path, and the arguments that make it call Launch.
	Self []string
	Out  io.Writer
	// Dir is an empty folder that the tour may use.
	Dir string
}

const jobFile = `# a GPT of 8 billion parameters on two nodes of eight H100
name: gpt-8b
nodes: 2
gpus_per_node: 8
gpu: h100
time: 00:20:00
worktree: %s
env:
  CUDA_DEVICE_MAX_CONNECTIONS: "8"
artifact:
  path: results/metrics.json
args:
  - --tensor-model-parallel-size=8
  - --pipeline-model-parallel-size=2
  - --sequence-parallel
  - --use-distributed-optimizer
  - --num-layers=32
  - --hidden-size=4608
  - --num-attention-heads=36
  - --seq-length=4096
  - --max-position-embeddings=4096
  - --micro-batch-size=8
  - --global-batch-size=128
  - --train-iters=24
  - --eval-interval=1000
  - --lr=1.5e-4
  - --bf16
  - --mock-data
  - --tokenizer-type=NullTokenizer
  - --vocab-size=51199
  - --save=results
  - --save-interval=1000
`

// errStopped says that a step did not have the expected result.
var errStopped = errors.New("the demo stopped")

// Run goes through all steps: a plan that is refused, corrected, rendered, submitted; a
// failure, its diagnosis, the corrected job submitted again; its result, the rest of
// the job cancelled, and the loss curve.
func (t *Tour) Run(ctx context.Context) error {
	worktree := filepath.Join(t.Dir, "Megatron-LM")
	spec := filepath.Join(t.Dir, "gpt-8b.yaml")
	if err := Furnish(t.Dir, t.Self); err != nil {
		return err
	}
	if err := os.Setenv("PATH", filepath.Join(t.Dir, "bin")+string(os.PathListSeparator)+os.Getenv("PATH")); err != nil {
		return err
	}
	t.say(`megatron-ops demo: the main job on this machine's embedded back end.

What is real: the rules, the script, the processes (two "nodes" of eight ranks
each, kept in step over TCP), their failure, its diagnosis, the cancelling.
What stands in: there is no GPU and no Megatron-LM here. A stand-in for uv and
pretrain_gpt.py "allocates" by Megatron's activation formula, makes up a loss,
and gives one rank less memory than the others, as if somebody had left a
process on that GPU. Times are shortened: a collective is given up after 1.5 s.`)

	t.say("1. A specification with two mistakes: somebody's CUDA_DEVICE_MAX_CONNECTIONS, and 36 heads on TP 8.")
	if code := t.do(ctx, "plan", "-f", spec); code != 3 {
		return t.stopped("the plan found nothing (exit code %d)", code)
	}
	t.say("2. Mended: TP 4 divides 36 heads, and the variable is left to the rules.")
	if err := t.edit(spec, "--tensor-model-parallel-size=8", "--tensor-model-parallel-size=4", "env:\n  CUDA_DEVICE_MAX_CONNECTIONS: \"8\"\n", ""); err != nil {
		return err
	}
	if code := t.do(ctx, "plan", "-f", spec); code != 0 {
		return t.stopped("the mended plan is refused (exit code %d)", code)
	}
	t.say("3. The script that an expert would have written for it.")
	if code := t.do(ctx, "render", "-f", spec, "--minimal"); code != 0 {
		return t.stopped("render failed (exit code %d)", code)
	}
	t.say("4. Submitted: two nodes, sixteen ranks.")
	id, err := t.submit(ctx, spec)
	if err != nil {
		return err
	}
	if state, err := t.wait(ctx, id, 30*time.Second); err != nil || state != "FAILED" {
		return t.stopped("job %s is %s, and should have failed: %v", id, state, err)
	}
	t.do(ctx, "status", id)
	t.say("5. It failed. Fifteen ranks report NCCL time-outs; which one died first, and of what?")
	if code := t.do(ctx, "diagnose", id); code != 3 {
		return t.stopped("the diagnosis found nothing (exit code %d)", code)
	}
	t.say("6. The advice is taken: a smaller micro batch (the global batch stays, so does the experiment).")
	if err := t.edit(spec, "--micro-batch-size=8", "--micro-batch-size=2"); err != nil {
		return err
	}
	id, err = t.submit(ctx, spec)
	if err != nil {
		return err
	}
	t.say("7. Its result is watched for, instead of its end: useful output comes before a job is over.")
	if code := t.do(ctx, "wait", id, "--timeout", "30", "--cancel"); code != 0 {
		return t.stopped("the result did not appear (exit code %d)", code)
	}
	b, err := os.ReadFile(filepath.Join(worktree, "results", "metrics.json"))
	if err != nil {
		return t.stopped("%v", err)
	}
	t.say("   results/metrics.json: " + string(b))
	t.say("8. The allocation was given back. This is how the loss went.")
	if state, err := t.wait(ctx, id, 20*time.Second); err != nil || state != "CANCELLED" {
		return t.stopped("job %s is %s, and should be cancelled: %v", id, state, err)
	}
	t.do(ctx, "metrics", id)
	t.do(ctx, "list", "--all")
	t.say("That is the whole way. On your cluster: the same commands, with your worktree and --cluster slurm.")
	return nil
}

// Furnish creates in dir what the tour starts from: the specification gpt-8b.yaml with
// its two mistakes, the worktree Megatron-LM, and bin/uv, a stand-in that calls self,
// which is a program and the arguments that make it call Launch.
func Furnish(dir string, self []string) error {
	worktree := filepath.Join(dir, "Megatron-LM")
	for _, d := range []string{filepath.Join(worktree, ".venv"), filepath.Join(dir, "bin")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return err
		}
	}
	files := map[string]string{
		filepath.Join(worktree, "pretrain_gpt.py"): "# a placeholder: the demo's stand-in for uv plays this program\n",
		filepath.Join(dir, "bin", "uv"):            "#!/bin/sh\n# stands in for uv in the demo: there is no Python here\nexec " + shellword.Line(self) + ` "$@"` + "\n",
		filepath.Join(dir, "gpt-8b.yaml"):          fmt.Sprintf(jobFile, worktree),
	}
	for name, text := range files {
		if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
			return err
		}
	}
	return nil
}

func (t *Tour) say(text string) { fmt.Fprintf(t.Out, "\n%s\n", text) }

// do prints a command line and runs it.
func (t *Tour) do(ctx context.Context, args ...string) int {
	fmt.Fprintf(t.Out, "\n$ megatron-ops %s\n", strings.Join(args, " "))
	return t.Do(ctx, args, t.Out)
}

func (t *Tour) stopped(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errStopped, fmt.Sprintf(format, args...))
}

// edit replaces texts in the specification, given as pairs of old and new.
func (t *Tour) edit(file string, pairs ...string) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(strings.NewReplacer(pairs...).Replace(string(b))), 0o644)
}

var jobLine = regexp.MustCompile(`as job ([0-9_]+)`)

func (t *Tour) submit(ctx context.Context, spec string) (string, error) {
	var seen strings.Builder
	fmt.Fprintf(t.Out, "\n$ megatron-ops submit -f %s --cluster local --yes\n", spec)
	if code := t.Do(ctx, []string{"submit", "-f", spec, "--cluster", "local", "--yes"}, io.MultiWriter(t.Out, &seen)); code != 0 {
		return "", t.stopped("submit failed (exit code %d)", code)
	}
	m := jobLine.FindStringSubmatch(seen.String())
	if m == nil {
		return "", t.stopped("submit told no job id")
	}
	return m[1], nil
}

// wait polls the job's state until the job has ended.
func (t *Tour) wait(ctx context.Context, id string, timeout time.Duration) (state string, err error) {
	err = t.until(ctx, timeout, func() bool {
		var b strings.Builder
		t.Do(ctx, []string{"status", id, "-o", "json"}, &b)
		var job struct {
			State string `json:"state"`
		}
		if json.Unmarshal([]byte(b.String()), &job) != nil {
			return false
		}
		state = job.State
		switch state {
		case "PENDING", "RUNNING", "COMPLETING", "":
			return false
		}
		return true
	})
	return state, err
}

func (t *Tour) until(ctx context.Context, timeout time.Duration, done func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	return nil
}
