package job_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// The test binary is a stand-in for the programs that a script starts. Started through a
// link with the name of such a program, it records its arguments, working directory and
// environment in $STANDIN_LOG, and imitates the program as far as the tests need.
func TestMain(m *testing.M) {
	if name := filepath.Base(os.Args[0]); slices.Contains(standIns, name) {
		syscall.Exit(standIn(name, os.Args[1:])) // skips the output of -cover at the end of a test
	}
	standInBin = linked()
	code := m.Run()
	_ = os.RemoveAll(standInBin)
	_ = os.Remove(mails)
	_ = os.Remove(mails + ".sent")
	os.Exit(code)
}

// standInBin is the folder of the stand-ins, which the PATH of a script includes.
var standInBin string

func linked() string {
	bin, err := os.MkdirTemp("", "standins-")
	if err != nil {
		panic(err)
	}
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	for _, name := range standIns {
		if err := os.Symlink(self, filepath.Join(bin, name)); err != nil {
			panic(err)
		}
	}
	return bin
}

var standIns = []string{"srun", "scontrol", "sbatch", "uv", "python", "docker", "singularity", "apptainer", "enroot", "nvidia-smi", "mylauncher", "squeue", "getent"}

// A call is one start of a stand-in.
type call struct {
	Prog string
	Argv []string
	Dir  string
	Env  map[string]string
}

func standIn(name string, argv []string) int {
	dir, _ := os.Getwd()
	c := call{Prog: name, Argv: argv, Dir: dir, Env: map[string]string{}}
	for _, kv := range os.Environ() {
		k, v, _ := strings.Cut(kv, "=")
		c.Env[k] = v
	}
	line, _ := json.Marshal(c)
	log, err := os.OpenFile(os.Getenv("STANDIN_LOG"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return 99
	}
	_, _ = log.Write(append(line, '\n'))
	switch name {
	case "srun":
		return onEachNode(argv)
	case "scontrol":
		if len(argv) > 1 && argv[1] == "hostnames" {
			fmt.Println("node0\nnode1")
		}
		if len(argv) > 1 && argv[1] == "batch_script" {
			fmt.Println("#!/bin/bash")
		}
	case "uv":
		return become(argv[1:], os.Environ())
	case "squeue":
		fmt.Println("2 node[0-1]")
	case "getent": // without asking a name server, which may be slow
		if argv[len(argv)-1] != "localhost" {
			return 2
		}
	case "nvidia-smi":
		if os.Getenv("STANDIN_SIGNAL") != "" {
			_ = syscall.Kill(syscall.Getpgrp(), syscall.SIGUSR1)
		}
		fmt.Print(os.Getenv("STANDIN_GPUS"))
	case "docker", "enroot":
		return isolated(argv)
	case "singularity", "apptainer":
		i := slices.IndexFunc(argv, func(a string) bool { return a == "bash" || a == "env" })
		return become(argv[i:], os.Environ())
	case "python":
		code, _ := strconv.Atoi(os.Getenv("STANDIN_EXIT"))
		return code
	}
	return 0
}

// onEachNode runs srun's command once per node, one node after the other.
func onEachNode(argv []string) int {
	i := slices.IndexFunc(argv, func(a string) bool { return !strings.HasPrefix(a, "-") })
	if i < 0 {
		return 0
	}
	worst := 0
	nodes, _ := strconv.Atoi(os.Getenv("SLURM_NNODES"))
	if slices.Contains(argv[:i], "--nodes=1") {
		nodes = 1
	}
	for n := range nodes {
		cmd := exec.Command(argv[i], argv[i+1:]...)
		cmd.Env = append(os.Environ(), fmt.Sprint("SLURM_NODEID=", n), fmt.Sprint("SLURM_PROCID=", n), fmt.Sprint("SLURMD_NODENAME=node", n))
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		// A process group of its own can receive a signal with all of its processes.
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := cmd.Run(); err != nil {
			worst = max(worst, exitStatus(cmd.ProcessState))
		}
	}
	return worst
}

// exitStatus returns the status of an ended process as a shell reports it: 128 plus the
// signal's number if a signal killed it.
func exitStatus(p *os.ProcessState) int {
	if p != nil {
		if by, ok := p.Sys().(syscall.WaitStatus); ok && by.Signaled() {
			return 128 + int(by.Signal())
		}
	}
	return p.ExitCode()
}

// isolated runs a command like a container runtime that passes only the variables named
// by options.
func isolated(argv []string) int {
	if slices.Contains([]string{"image", "pull", "load"}, argv[0]) {
		return 0
	}
	env := []string{"PATH=" + os.Getenv("PATH"), "STANDIN_LOG=" + os.Getenv("STANDIN_LOG"), "STANDIN_GPUS=" + os.Getenv("STANDIN_GPUS")}
	for i, a := range argv {
		switch a {
		case "-e", "--env":
			if strings.Contains(argv[i+1], "=") {
				env = append(env, argv[i+1])
			} else if v, ok := os.LookupEnv(argv[i+1]); ok {
				env = append(env, argv[i+1]+"="+v)
			}
		case "bash", "env":
			return become(argv[i:], env)
		}
	}
	return 99
}

func become(argv, env []string) int {
	path, err := exec.LookPath(argv[0])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 127
	}
	fmt.Fprintln(os.Stderr, syscall.Exec(path, argv, env))
	return 126
}

// A run is the result of executing a script.
type run struct {
	calls  []call
	code   int
	output string
	dir    string
}

// of returns the calls of one program.
func (r run) of(prog string) []call {
	return slices.DeleteFunc(slices.Clone(r.calls), func(c call) bool { return c.Prog != prog })
}

// execute renders spec for a new worktree and runs the script with stand-ins, like Slurm
// on two nodes. Settings are further NAME=value pairs for the environment.
func execute(t testing.TB, spec job.Spec, o job.Options, settings ...string) run {
	t.Helper()
	root := t.TempDir()
	spec.Worktree = filepath.Join(root, "tree")
	script, err := job.Render(spec, o)
	require.NoError(t, err)
	if filepath.IsAbs(script.LogDir) {
		// Moved after rendering: temporary folders may lie where logs must not, as in /dev/shm.
		here := filepath.Join(root, "scratch", "logs")
		script.Text, script.LogDir = strings.ReplaceAll(script.Text, script.LogDir, here), here
	}
	return executeScript(t, root, script, settings...)
}

// executeScript runs a script whose worktree is inside root.
func executeScript(t testing.TB, root string, script job.Script, settings ...string) run {
	t.Helper()
	tree, bin := script.WorkDir, standInBin
	require.NoError(t, os.MkdirAll(tree, 0o755))
	require.NoError(t, os.MkdirAll(root, 0o755))
	logs := script.LogDir
	if !filepath.IsAbs(logs) {
		logs = filepath.Join(tree, logs)
	}
	require.NoError(t, os.MkdirAll(logs, 0o755))
	file := filepath.Join(root, "script.sh")
	require.NoError(t, os.WriteFile(file, []byte(script.Text), 0o644))

	log := filepath.Join(root, "calls")
	cmd := exec.Command("/bin/bash", file)
	cmd.Dir = tree
	cmd.Env = append([]string{
		"PATH=" + bin + ":/usr/bin:/bin", "HOME=" + root, "STANDIN_LOG=" + log, "CANARY=" + filepath.Join(root, "canary"),
		"STANDIN_GPUS=" + strings.Repeat("0, 3\n", 8),
		"SLURM_JOB_ID=42", "SLURM_NNODES=2", "SLURM_JOB_NODELIST=node[0-1]", "SLURM_JOB_NAME=x", "SLURM_NODEID=0",
	}, settings...)
	// A file, because processes left in the background would keep a pipe open.
	out, err := os.Create(filepath.Join(root, "output"))
	require.NoError(t, err)
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	_ = cmd.Run()
	output, err := os.ReadFile(out.Name())
	require.NoError(t, err)
	r := run{code: cmd.ProcessState.ExitCode(), output: string(output), dir: tree}
	r.calls = readCalls(t, log)
	require.NoFileExists(t, filepath.Join(root, "canary"), "a value was executed")
	return r
}

func readCalls(t testing.TB, log string) []call {
	t.Helper()
	text, _ := os.ReadFile(log)
	var calls []call
	for line := range bytes.Lines(text) {
		var c call
		require.NoError(t, json.Unmarshal(line, &c))
		calls = append(calls, c)
	}
	return calls
}
