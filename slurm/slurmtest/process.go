package slurmtest

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// dirVariable is the environment variable with the cluster's directory. Every process that is
// started here, and its descendants, have it.
const dirVariable = "SLURMTEST_DIR"

// daemon starts a program as a user, and stores its process id with its start time,
// because a process id alone may be reused.
func (c *Cluster) daemon(name, as string, env []string, argv ...string) error {
	log, err := os.OpenFile(c.path("log", name+".console"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(append(c.Environ(), env...), dirVariable+"="+c.Dir)
	cmd.Dir, cmd.Stdout, cmd.Stderr = "/", log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if as != "root" {
		if cmd.SysProcAttr.Credential, err = credential(as); err != nil {
			return err
		}
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	since, err := startTime(cmd.Process.Pid)
	if err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	go func() { _ = cmd.Wait() }()
	return os.WriteFile(c.path("pids", name), fmt.Appendf(nil, "%d %s\n", cmd.Process.Pid, since), 0o644)
}

// startTime returns when a process started, in the kernel's ticks.
func startTime(pid int) (string, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", err
	}
	// Field 22, counted after the name in parentheses, which may contain any character.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 20 || fields[0] == "Z" {
		return "", errors.New("the process has ended")
	}
	return fields[19], nil
}

// pid returns the process that was started as name, as long as it is still the same
// process.
func pid(dir, name string) (int, bool) {
	text, err := os.ReadFile(filepath.Join(dir, "pids", name))
	if err != nil {
		return 0, false
	}
	var id int
	var since string
	if _, err := fmt.Sscan(string(text), &id, &since); err != nil {
		return 0, false
	}
	now, err := startTime(id)
	return id, err == nil && now == since
}

// Signal sends sig to a daemon: "slurmctld", "slurmdbd", "slurmd.gpu1" and so on.
func (c *Cluster) Signal(name string, sig syscall.Signal) error {
	id, ok := pid(c.Dir, name)
	if !ok {
		return fmt.Errorf("%s does not run", name)
	}
	return syscall.Kill(id, sig)
}

// StopController stops slurmctld in good order and waits for its end.
func (c *Cluster) StopController() error {
	if err := c.Signal("slurmctld", syscall.SIGTERM); err != nil {
		return err
	}
	for range 300 {
		if _, runs := pid(c.Dir, "slurmctld"); !runs {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return errors.New("slurmctld did not end within 15s")
}

// Down kills the Slurm in dir and removes dir. Nothing in it is worth keeping, so no
// daemon is stopped in good order.
func Down(dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	names, err := os.ReadDir(filepath.Join(dir, "pids"))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s holds no Slurm of ours", dir)
	}
	if err != nil {
		return err
	}
	var ids []int
	for _, n := range names {
		if id, runs := pid(dir, n.Name()); runs {
			ids = append(ids, id)
		}
	}
	ids = append(ids, marked(dir)...)
	slices.Sort(ids)
	for _, id := range slices.Compact(ids) {
		for _, p := range append(below(id), id) {
			_ = syscall.Kill(p, syscall.SIGKILL)
		}
	}
	for range 100 {
		if len(marked(dir)) == 0 {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	return os.RemoveAll(dir)
}

// marked lists the processes whose environment names dir: daemons, and the step daemons
// that they left behind.
func marked(dir string) []int {
	return processes(func(_, env []string) bool { return slices.Contains(env, dirVariable+"="+dir) })
}

// processes lists the processes, except this one, for which matches is true of their
// arguments and their initial environment, as far as these may be read. It lists none
// where there is no /proc.
func processes(matches func(args, env []string) bool) []int {
	var ids []int
	words := func(path string) []string {
		text, _ := os.ReadFile(path)
		return strings.Split(string(text), "\x00")
	}
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		id, err := strconv.Atoi(e.Name())
		if err != nil || id == os.Getpid() {
			continue
		}
		proc := filepath.Join("/proc", e.Name())
		args := words(filepath.Join(proc, "cmdline"))
		if len(args) == 1 && args[0] == "" {
			continue // a kernel thread, or a process that has ended
		}
		if matches(args, words(filepath.Join(proc, "environ"))) {
			ids = append(ids, id)
		}
	}
	return ids
}

// below lists the descendants of id. A step's tasks have only their user's environment,
// so marked does not find them.
func below(id int) []int {
	var all []int
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", id))
	for _, f := range files {
		text, _ := os.ReadFile(f)
		for word := range strings.FieldsSeq(string(text)) {
			if child, err := strconv.Atoi(word); err == nil {
				all = append(append(all, below(child)...), child)
			}
		}
	}
	return all
}

//go:embed janitor.sh
var janitor string

// endWithUs makes the Slurm in dir end when this process ends in any way: a shell waits
// until a pipe is closed that only this process holds open.
func endWithUs(dir string) error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	cmd := exec.Command("/bin/sh", "-c", janitor, "slurmtest-janitor", dir)
	cmd.Stdin, cmd.Dir = r, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	r.Close()
	openPipes = append(openPipes, w)
	return err
}

// openPipes keeps the pipes open, because the garbage collector closes a file that nobody
// refers to.
var openPipes []*os.File
