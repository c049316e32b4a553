package joblogs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/shellword"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

// The first argument of this program where a job starts it to read a part of the logs,
// or to combine the parts into one answer. People do not type these words.
const (
	digestWord = "__diagnose-part"
	reduceWord = "__diagnose-reduce"
)

// The number of logs that one task reads, and the most tasks.
const (
	logsOfShard = 64
	maxShards   = 256
)

// A taskInput is the input of the tasks of a diagnosis on the cluster, in a file beside
// their answers.
type taskInput struct {
	Paths  []string         `json:"paths"`
	Shards int              `json:"shards"`
	Files  int              `json:"files"`
	Given  diagnose.Context `json:"given"`
	Owner  logfile.Owner    `json:"owner"`
	Launch *megatron.Run    `json:"launch,omitempty"`
}

// Worker runs a task of a diagnosis on the cluster. args are the program's arguments,
// with its name first. ok is false where args do not ask for such a task.
func Worker(ctx context.Context, args []string, stderr io.Writer) (code int, ok bool) {
	if len(args) < 3 || args[1] != digestWord && args[1] != reduceWord {
		return 0, false
	}
	work := func() error {
		dir := args[2]
		var e taskInput
		text, err := os.ReadFile(filepath.Join(dir, "input.json"))
		if err == nil {
			err = json.Unmarshal(text, &e)
		}
		if err != nil {
			return err
		}
		if args[1] == reduceWord {
			return e.reduce(ctx, dir)
		}
		if len(args) < 4 {
			return lang.Text{EN: "which part is not said", ZH: "没有指明是哪一部分"}.Err()
		}
		k, err := strconv.Atoi(args[3])
		if err != nil || k < 0 || k >= e.Shards {
			return lang.Text{EN: "there is no part %q of %d", ZH: "没有第 %q 部分（共 %d 部分）"}.Err(args[3], e.Shards)
		}
		return e.digest(ctx, dir, k)
	}
	if err := work(); err != nil {
		fmt.Fprintln(stderr, "megatron-ops:", err)
		return 1, true
	}
	return 0, true
}

// digest reads the k-th part of the logs on the cluster.
func (e taskInput) digest(ctx context.Context, dir string, k int) error {
	src, err := logfile.OpenPart(k, e.Shards, e.Paths...)
	if err != nil {
		return err
	}
	src.LeaveOutOthers(e.Owner)
	return writeAtomically(filepath.Join(dir, fmt.Sprintf("part-%d.gz", k)), func(w io.Writer) error {
		return scan.WriteDigest(ctx, src, e.Files, w)
	})
}

// reduce combines all parts into one answer.
func (e taskInput) reduce(ctx context.Context, dir string) error {
	parts := make([]io.Reader, e.Shards)
	for k := range parts {
		f, err := os.Open(filepath.Join(dir, fmt.Sprintf("part-%d.gz", k)))
		if err != nil {
			return err
		}
		defer f.Close()
		parts[k] = f
	}
	src, err := logfile.ReadDigests(parts...)
	if err != nil {
		return err
	}
	e.Given.Launch, e.Given.Resolve = e.Launch, resolver(ctx)
	r, err := diagnose.Run(ctx, src, e.Given)
	if err != nil {
		return err
	}
	return writeAtomically(filepath.Join(dir, "answer.json"), func(w io.Writer) error { return json.NewEncoder(w).Encode(r) })
}

// writeAtomically writes a file so that it exists completely or not at all.
func writeAtomically(path string, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".writing-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if err := write(f); err != nil {
		f.Close()
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// onSlurm diagnoses logs with jobs on the cluster that holds them: the tasks of an
// array read the logs, and a job after it combines the answers.
func onSlurm(
	ctx context.Context, c *ops.Call, cl ops.Cluster, in DiagnoseIn, given diagnose.Context, owner logfile.Owner, paths []string,
) (r report.Report, err error) {
	if !c.AtShell() || c.Who.ReadOnly {
		return r, ops.InputError("on_slurm",
			lang.Text{EN: "a diagnosis that submits jobs is for the shell only", ZH: "需要提交作业的诊断只能在 shell 中执行"},
			lang.Text{EN: "use the shell", ZH: "请在 shell 中使用"})
	}
	e := taskInput{Paths: paths, Given: given, Owner: owner, Launch: given.Launch, Shards: in.Shards}
	if e.Files, err = logfile.Count(paths...); err != nil {
		return r, noLogAt("job", in.Target, err)
	}
	if e.Shards <= 0 {
		e.Shards = min(max(2, (e.Files+logsOfShard-1)/logsOfShard), maxShards)
	}
	if e.Shards > maxShards {
		return r, ops.InputError("shards",
			lang.Text{EN: "%d tasks are too many for one diagnosis", ZH: "一次诊断用 %d 个任务太多"}.With(e.Shards),
			lang.Text{EN: "at most %d", ZH: "最多 %d"}.With(maxShards))
	}
	program, err := os.Executable()
	if err != nil {
		return r, err
	}
	// The person's current folder is assumed to be visible to the nodes; the answer is
	// read from it.
	dir, err := os.MkdirTemp(c.Dir, ".megatron-ops-diagnose-")
	if err != nil {
		return r, &ops.Error{Code: ops.Failed, Field: "on_slurm", Message: lang.Said(err), Fix: lang.Text{EN: "start it in a folder of yours that the nodes see", ZH: "请在自己的、节点可见的目录中启动"}}
	}
	defer os.RemoveAll(dir)
	text, err := json.Marshal(e)
	if err != nil {
		return r, err
	}
	if err := os.WriteFile(filepath.Join(dir, "input.json"), text, 0o600); err != nil {
		return r, err
	}
	return runTasks(ctx, c, cl, e, dir, program, cpuPartition(ctx, cl, in.Partition))
}

// runTasks submits the array and the job after it, and waits for the answer.
func runTasks(ctx context.Context, c *ops.Call, cl ops.Cluster, e taskInput, dir, program, partition string) (r report.Report, err error) {
	script := func(mem, output string, words ...string) string {
		lines := []string{
			"#!/bin/bash", "#SBATCH --job-name=megatron-ops-diagnose", "#SBATCH --nodes=1", "#SBATCH --ntasks=1",
			"#SBATCH --cpus-per-task=2", "#SBATCH --mem=" + mem, "#SBATCH --time=30", "#SBATCH --output=" + output, "#SBATCH --open-mode=append",
		}
		if partition != "" {
			lines = append(lines, "#SBATCH --partition="+partition)
		}
		for i, w := range words {
			if w != `"$SLURM_ARRAY_TASK_ID"` {
				words[i] = shellword.Bash(w)
			}
		}
		return strings.Join(lines, "\n") + "\nexec " + strings.Join(words, " ") + "\n"
	}
	said := filepath.Join(dir, "said.txt")
	array, err := cl.Submit(ctx, slurm.Submission{
		Script: script("1G", said, program, digestWord, dir, `"$SLURM_ARRAY_TASK_ID"`),
		Dir:    dir, Args: []string{"--array=0-" + strconv.Itoa(e.Shards-1)},
	})
	if err != nil {
		return r, c.SlurmError(err, "")
	}
	after, err := cl.Submit(ctx, slurm.Submission{
		Script: script("2G", said, program, reduceWord, dir), Dir: dir,
		Args: []string{"--dependency=afterok:" + string(array), "--kill-on-invalid-dep=yes"},
	})
	ids := []slurm.JobID{array, after}
	if err != nil {
		_ = cl.Cancel(context.WithoutCancel(ctx), array)
		return r, c.SlurmError(err, "")
	}
	end := slurm.State("")
	for ; !end.Ended(); c.Step(0, 0, lang.Text{EN: "%d logs in %d tasks of job %s: %s", ZH: "作业 %[3]s 的 %[2]d 个任务读取 %[1]d 份日志：%[4]s"}.With(e.Files, e.Shards, array, end).In(c.Lang)) {
		if !ops.Pause(ctx, min(ops.PollPause(cl), 2*time.Second)) {
			for _, id := range ids {
				_ = cl.Cancel(context.WithoutCancel(ctx), id)
			}
			return r, ctx.Err()
		}
		if j, err := cl.Job(ctx, after); err == nil {
			end = j.State
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "answer.json"))
	for range 20 { // a network file system may show the file a little later
		if end != slurm.Completed || !errors.Is(err, fs.ErrNotExist) {
			break
		}
		time.Sleep(250 * time.Millisecond)
		text, err = os.ReadFile(filepath.Join(dir, "answer.json"))
	}
	if err != nil {
		words, _ := os.ReadFile(said)
		return r, &ops.Error{
			Code: ops.Failed, Field: "on_slurm", Message: lang.Text{EN: "jobs %s and %s gave no answer (%s): %s", ZH: "作业 %s 与 %s 没有给出结果（%s）：%s"}.With(array, after, end, lastLine(string(words))),
			Fix: lang.Text{EN: "the nodes must see %s, the logs and %s; --partition chooses where; without --on-slurm the logs are read here", ZH: "节点须能看到 %s、日志与 %s；--partition 选择分区；不带 --on-slurm 则在本机读取日志"}.With(program, filepath.Dir(dir)),
		}
	}
	return r, json.Unmarshal(text, &r)
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// cpuPartition returns the partition that the call asks for, else one without GPUs that
// accepts jobs, else "" for the default one.
func cpuPartition(ctx context.Context, cl ops.Cluster, asked string) string {
	if asked != "" {
		return asked
	}
	all, err := cl.Partitions(ctx)
	if err != nil {
		return ""
	}
	i := slices.IndexFunc(all, func(p slurm.Partition) bool { return p.Up && p.GPUs == 0 && p.Total > 0 })
	if i < 0 {
		return ""
	}
	return all[i].Name
}
