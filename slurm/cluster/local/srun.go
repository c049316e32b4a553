package local

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/cluster"
	"github.com/megatron-ops/megatron-ops/slurm/hostlist"
)

// An srun runs one step.
type srun struct {
	step
	env    environ
	jobID  string // value of SLURM_JOB_ID
	stepID string
	files  map[string]*os.File
	mu     sync.Mutex // guards files, standard output and error
}

// srunMain is the stand-in for srun inside a job.
func srunMain(args []string) int {
	env := environOf(os.Environ())
	allocated, err := hostlist.Expand(env["SLURM_JOB_NODELIST"])
	if err != nil || len(allocated) == 0 {
		fmt.Fprintln(os.Stderr, "srun: error: not inside a job: SLURM_JOB_NODELIST is not set")
		return 1
	}
	s, err := readStep(args, env, allocated)
	if err != nil {
		return exitStatus("srun", err)
	}
	run := srun{step: s, env: env, jobID: env["SLURM_JOB_ID"], files: map[string]*os.File{}}
	if run.stepID, err = nextStep(env); err != nil {
		return exitStatus("srun", err)
	}
	return run.main()
}

// nextStep returns the next free step number of a job.
func nextStep(env environ) (string, error) {
	id := cmp.Or(env["SLURM_ARRAY_JOB_ID"], env["SLURM_JOB_ID"])
	jobDir := store{env[storeVar]}.jobDir(slurm.JobID(id))
	for n := range 1 << 20 {
		path := filepath.Join(jobDir, fmt.Sprintf("%s.step.%d", env["SLURM_JOB_ID"], n))
		f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
		if err == nil {
			return strconv.Itoa(n), f.Close()
		}
		if !errors.Is(err, os.ErrExist) {
			return "", err
		}
	}
	return "", lang.Text{EN: "no step number is free", ZH: "没有空闲的步骤编号"}.Err()
}

// An outcome is the end of one task.
type outcome struct {
	task
	err error
}

// main starts the tasks and returns the step's exit code.
func (s *srun) main() int {
	tasks := s.tasks()
	input, err := s.input()
	if err != nil {
		return exitStatus("srun", err)
	}
	ended := make(chan outcome, len(tasks))
	running := map[int]*exec.Cmd{}
	var pipes sync.WaitGroup
	for _, t := range tasks {
		cmd, err := s.start(t, input, &pipes)
		if err != nil {
			fmt.Fprintf(os.Stderr, "slurmstepd: error: execve(): %s: %v\n", s.Argv[0], errors.Unwrap(err))
			ended <- outcome{t, err}
			continue
		}
		running[t.Proc] = cmd
		go func() { ended <- outcome{t, cmd.Wait()} }()
	}
	if input != s.Input {
		os.Remove(input) // every task has the file open
	}
	code := s.wait(len(tasks), running, ended)
	pipes.Wait()
	for _, f := range s.files {
		f.Close()
	}
	return code
}

// wait waits for all tasks, passes signals on to them, and returns the highest exit
// code. It stops the other tasks after a bad exit (--kill-on-bad-exit), some time after
// the first end (--wait), or at the step's time limit.
func (s *srun) wait(n int, running map[int]*exec.Cmd, ended <-chan outcome) (code int) {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2)
	var giveUp, limit <-chan time.Time
	if s.Limit > 0 {
		limit = time.After(s.Limit)
	}
	all := func(sig syscall.Signal) {
		for _, cmd := range running {
			_ = syscall.Kill(-cmd.Process.Pid, sig)
		}
	}
	stop := func(why string) {
		s.complain("slurmstepd: error: *** STEP %s.%s ON %s CANCELLED AT %s%s ***", s.jobID, s.stepID, s.Nodes[0], time.Now().Format("2006-01-02T15:04:05"), why)
		all(syscall.SIGTERM)
		time.AfterFunc(killWait, func() { all(syscall.SIGKILL) })
	}
	stopping := false
	for n > 0 {
		select {
		case o := <-ended:
			n--
			delete(running, o.Proc)
			exit := s.report(o)
			code = max(code, exit)
			if exit != 0 && s.KillOnBad && !stopping {
				stopping = true
				s.complain("srun: Terminating StepId=%s.%s", s.jobID, s.stepID)
				stop("")
			}
			if s.Wait > 0 && giveUp == nil {
				giveUp = time.After(s.Wait)
			}
		case <-giveUp:
			s.complain("srun: error: Timed out waiting for job step to complete")
			stop("")
		case <-limit:
			stop(" DUE TO TIME LIMIT")
			code = max(code, 1)
		case sig := <-signals:
			if sig == syscall.SIGTERM && !stopping {
				stopping = true
				s.complain("srun: Job step aborted: Waiting up to %d seconds for job step to finish.", int(killWait.Seconds())+2)
			}
			all(sig.(syscall.Signal)) //nolint:forcetypeassert // all of ours are
		}
	}
	return code
}

// report prints srun's message about a task that failed, and returns the task's exit
// code.
func (s *srun) report(o outcome) int {
	if o.err == nil {
		return 0
	}
	code := 2 // the task could not be started
	if exit, isExit := errors.AsType[*exec.ExitError](o.err); isExit {
		status := exit.Sys().(syscall.WaitStatus) //nolint:forcetypeassert // always so on Unix
		if status.Signaled() {
			name := status.Signal().String()
			s.complain("srun: error: %s: task %d: %s%s", o.Name, o.Proc, strings.ToUpper(name[:1]), name[1:])
			return 128 + int(status.Signal())
		}
		code = status.ExitStatus()
	}
	s.complain("srun: error: %s: task %d: Exited with exit code %d", o.Name, o.Proc, code)
	return code
}

// complain prints a message on standard error, unless --quiet is set.
func (s *srun) complain(format string, args ...any) {
	if s.Quiet {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(os.Stderr, format+"\n", args...)
}

// input returns the file that every task reads, or "" for none. It copies srun's own
// standard input into a file, because each task gets all of it.
func (s *srun) input() (string, error) {
	if s.Input == "none" {
		return "", nil
	}
	if s.Input != "" && s.Input != "all" {
		return s.Input, nil
	}
	info, err := os.Stdin.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice != 0 {
		return "", nil
	}
	f, err := os.CreateTemp("", "srun-input-")
	if err != nil {
		return "", err
	}
	defer f.Close()
	if n, err := io.Copy(f, os.Stdin); err != nil || n == 0 {
		os.Remove(f.Name())
		return "", err
	}
	return f.Name(), nil
}

func (s *srun) start(t task, input string, pipes *sync.WaitGroup) (*exec.Cmd, error) {
	cmd := exec.Command(s.Argv[0], s.Argv[1:]...)
	env := s.taskEnviron(t)
	cmd.Env = env.entries()
	cmd.Dir = s.Chdir
	if path := cluster.LookIn(cmd.Env, s.Argv[0]); path != "" {
		cmd.Path, cmd.Err = path, nil
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if input != "" {
		f, err := os.Open(input)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		cmd.Stdin = f
	}
	out, err := s.sink(t, s.Output, os.Stdout)
	if err != nil {
		return nil, err
	}
	errs, err := s.sink(t, s.Error, os.Stderr)
	if err != nil {
		return nil, err
	}
	if s.Error == "" && s.Output != "" {
		errs = out
	}
	var writeEnds []*os.File
	connect := func(to *os.File) (*os.File, error) {
		if !s.Label {
			return to, nil
		}
		r, w, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		writeEnds = append(writeEnds, w)
		pipes.Go(func() { s.label(t, r, to) })
		return w, nil
	}
	if cmd.Stdout, err = connect(out); err != nil {
		return nil, err
	}
	if cmd.Stderr, err = connect(errs); err != nil {
		return nil, err
	}
	err = cmd.Start()
	for _, w := range writeEnds {
		w.Close()
	}
	return cmd, err
}

// label copies lines and puts the task's number before each.
func (s *srun) label(t task, from, to *os.File) {
	defer from.Close()
	width := len(strconv.Itoa(s.NTasks - 1))
	r := bufio.NewReader(from)
	for {
		line, err := r.ReadString('\n')
		if line != "" {
			if !strings.HasSuffix(line, "\n") {
				line += "\n"
			}
			s.mu.Lock()
			fmt.Fprintf(to, "%*d: %s", width, t.Proc, line)
			s.mu.Unlock()
		}
		if err != nil {
			return
		}
	}
}

// sink opens the file for a task's output. Tasks whose patterns expand to the same name
// share one file.
func (s *srun) sink(t task, pattern string, otherwise *os.File) (*os.File, error) {
	switch pattern {
	case "", "all":
		return otherwise, nil
	case "none":
		pattern = os.DevNull
	}
	name := slurm.ExpandLetters(pattern, func(letter byte) (string, bool) {
		v, ok := map[byte]string{
			'x': s.env["SLURM_JOB_NAME"], 'j': s.jobID, 'J': s.jobID + "." + s.stepID,
			'A': cmp.Or(s.env["SLURM_ARRAY_JOB_ID"], s.jobID), 'a': cmp.Or(s.env["SLURM_ARRAY_TASK_ID"], "4294967294"),
			's': s.stepID, 't': strconv.Itoa(t.Proc), 'n': strconv.Itoa(t.Node), 'N': t.Name, 'u': s.env["SLURM_JOB_USER"],
		}[letter]
		return v, ok
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.files[name]; f != nil {
		return f, nil
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY|os.O_APPEND, 0o644)
	if err == nil {
		s.files[name] = f
	}
	return f, err
}

func (s *srun) taskEnviron(t task) environ {
	e := maps.Clone(s.env).export(s.Export)
	set := func(name string, value any) { e[name] = fmt.Sprint(value) }
	set("SLURM_STEP_ID", s.stepID)
	set("SLURM_STEPID", s.stepID)
	set("SLURM_STEP_NODELIST", hostlist.Compress(s.Nodes))
	set("SLURM_STEP_NUM_NODES", len(s.Nodes))
	set("SLURM_STEP_NUM_TASKS", s.NTasks)
	set("SLURM_STEP_TASKS_PER_NODE", perNode(max(s.NTasks/len(s.Nodes), 1), len(s.Nodes)))
	set("SLURM_NTASKS", s.NTasks)
	set("SLURM_NPROCS", s.NTasks)
	set("SLURM_NNODES", len(s.Nodes))
	set("SLURM_NODEID", t.Node)
	set("SLURM_PROCID", t.Proc)
	set("SLURM_LOCALID", t.Local)
	set("SLURMD_NODENAME", t.Name)
	set("SLURM_TOPOLOGY_ADDR", t.Name)
	set("SLURM_LAUNCH_NODE_IPADDR", nodeAddress(1))
	set("SLURM_SRUN_COMM_HOST", "127.0.0.1")
	if s.CPUs > 0 {
		set("SLURM_CPUS_PER_TASK", s.CPUs)
	}
	setGPUs(e, s.GPUs)
	return e
}
