package local

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/hostlist"
)

func jobCluster() *Cluster { return New("local", os.Getenv(storeVar)) }

// scontrolMain is the stand-in for the subcommands of scontrol that job scripts use.
// Its `show hostnames` prints addresses in place of names, because scripts take
// MASTER_ADDR from it and no resolver knows local1.
func scontrolMain(args []string) int {
	ctx := context.Background()
	verb := strings.Join(args[:min(2, len(args))], " ")
	var err error
	switch {
	case verb == "show hostnames", verb == "show hostname":
		list := os.Getenv("SLURM_JOB_NODELIST")
		if len(args) > 2 {
			list = args[2]
		}
		var nodes []string
		nodes, err = hostlist.Expand(list)
		var names strings.Builder
		for _, node := range nodes {
			names.WriteString(hostname(node) + "\n")
		}
		// Print everything in one write, as scontrol does: behind `| head -n1` a second
		// write would go to a closed pipe, and pipefail would end the script.
		fmt.Print(names.String())
	case verb == "show hostlist" && len(args) > 2:
		var nodes []string
		nodes, err = hostlist.Expand(args[2])
		fmt.Println(hostlist.Compress(nodes))
	case verb == "show job" && len(args) > 2, verb == "show jobid" && len(args) > 2:
		var j slurm.Job
		if j, err = jobCluster().Job(ctx, slurm.JobID(args[2])); err == nil {
			fmt.Printf("JobId=%s JobName=%s\n   UserId=%s\n   JobState=%s Reason=%s\n   Requeue=1 Restarts=%d ExitCode=%s\n   NumNodes=%d\n   NodeList=%s\n   WorkDir=%s\n   StdErr=%s\n   StdOut=%s\n",
				j.ID, j.Name, j.User, j.State, j.Reason, j.Restarts, code(j), j.NumNodes, hostlist.Compress(j.Nodes), j.WorkDir, j.Stderr, j.Stdout)
		}
	case verb == "write batch_script" && (len(args) == 3 || len(args) == 4):
		err = writeScript(args[2], append(args[3:], fmt.Sprintf("slurm-%s.sh", args[2]))[0])
	case len(args) == 2 && args[0] == "requeue":
		err = jobCluster().Requeue(ctx, slurm.JobID(args[1]))
	case len(args) == 2 && args[0] == "hold":
		err = jobCluster().Hold(ctx, slurm.JobID(args[1]))
	case len(args) == 2 && args[0] == "release":
		err = jobCluster().Release(ctx, slurm.JobID(args[1]))
	default:
		err = slurm.Sayf("`scontrol %s` is not known to the embedded back end, which runs jobs on this machine without Slurm", strings.Join(args, " "))
	}
	return exitStatus("scontrol", err)
}

// writeScript copies a job's batch script to a file, or to standard output for -. The script
// of a chain and that of a series queue themselves again with it.
func writeScript(id, file string) error {
	c := jobCluster()
	if _, err := c.Job(context.Background(), slurm.JobID(id)); err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(c.store.jobDir(slurm.JobID(id)), "script"))
	if err != nil {
		return err
	}
	if file == "-" {
		_, err = os.Stdout.Write(text)
		return err
	}
	return os.WriteFile(file, text, 0o700)
}

func code(j slurm.Job) string {
	if j.ExitCode == nil {
		return "0:0"
	}
	return *j.ExitCode
}

func exitStatus(command string, err error) int {
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: error: %v\n", command, err)
		return 1
	}
	return 0
}

// scancelMain is the stand-in for `scancel [--signal=NAME [--batch|--full]] JOB...`.
func scancelMain(args []string) int {
	o, ids, err := scancelOptions(args)
	if err != nil {
		return exitStatus("scancel", err)
	}
	failed := 0
	for _, id := range ids {
		failed = max(failed, exitStatus("scancel", o.apply(context.Background(), jobCluster(), slurm.JobID(id))))
	}
	return failed
}

// cancelOptions are the options of scancel that job scripts use: the signal to send instead of
// ending the job, and whether the batch shell gets it, alone or too.
type cancelOptions struct {
	signal      string
	batch, full bool
}

func scancelOptions(args []string) (o cancelOptions, ids []string, err error) {
	signals := false
	for len(args) > 0 {
		word := args[0]
		args = args[1:]
		name, value, inline := strings.Cut(word, "=")
		switch {
		case name == "--signal" && inline:
			o.signal, signals = value, true
		case word == "--signal" || word == "-s":
			if len(args) == 0 {
				return o, nil, slurm.Sayf("option %s needs a signal", word)
			}
			o.signal, args, signals = args[0], args[1:], true
		case word == "--batch" || word == "-b":
			o.batch = true
		case word == "--full" || word == "-f":
			o.full = true
		case strings.HasPrefix(word, "-"):
			return o, nil, slurm.Sayf("option %s is not known to the embedded back end", word)
		default:
			ids = append(ids, word)
		}
	}
	if _, known := slurm.SignalNumber(o.signal); signals && !known { // an empty one would end the job
		return o, nil, slurm.Sayf("Unknown job signal: %s", o.signal)
	}
	return o, ids, nil
}

// apply ends a job, or signals its tasks, its batch shell or both.
func (o cancelOptions) apply(ctx context.Context, c *Cluster, id slurm.JobID) error {
	if o.signal == "" {
		return c.Cancel(ctx, id)
	}
	if o.batch || o.full {
		if err := c.Signal(ctx, id, "B:"+o.signal); err != nil || o.batch {
			return err
		}
	}
	return c.Signal(ctx, id, o.signal)
}

// sbatchMain is the stand-in for `sbatch [options] [script]` inside a job, which
// scripts use to chain jobs.
func sbatchMain(args []string) int {
	var script []byte
	var err error
	options := args
	if n := len(args); n > 0 && isFile(args[n-1]) {
		options = args[:n-1]
		script, err = os.ReadFile(args[n-1])
	} else {
		script, err = io.ReadAll(os.Stdin)
	}
	if err != nil {
		return exitStatus("sbatch", err)
	}
	id, err := jobCluster().Submit(context.Background(), slurm.Submission{Script: string(script), Args: options})
	if err != nil {
		return exitStatus("sbatch", err)
	}
	if !slices.Contains(options, "--parsable") {
		fmt.Print("Submitted batch job ")
	}
	fmt.Println(id)
	return 0
}
