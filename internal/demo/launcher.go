// Package demo is the tour of `megatron-ops demo`, and the stand-in for a GPU training
// that the tour runs: a launcher and ranks that rendezvous over TCP, synchronise each
// iteration and write logs in Megatron-LM's format. Only the demo and tests use it.
package demo

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A launch is the part of torch.distributed.run's arguments that the stand-in honours.
type launch struct {
	nnodes, nproc, nodeRank int
	addr                    string
	port                    int
	logDir, tee             string
	script                  string
	args                    []string
}

// parseLaunch reads the command line of `uv run python -m torch.distributed.run …` or
// `python -m torch.distributed.run …`.
func parseLaunch(argv []string) (launch, error) {
	for len(argv) > 0 && argv[0] != "torch.distributed.run" {
		argv = argv[1:]
	}
	if len(argv) == 0 {
		return launch{}, errors.New("stand-in for uv: only `uv run python -m torch.distributed.run …` is played here")
	}
	var l launch
	fs := flag.NewFlagSet("torch.distributed.run", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.IntVar(&l.nnodes, "nnodes", 1, "")
	fs.IntVar(&l.nproc, "nproc-per-node", 1, "")
	fs.IntVar(&l.nodeRank, "node-rank", 0, "")
	fs.StringVar(&l.addr, "master-addr", "127.0.0.1", "")
	fs.IntVar(&l.port, "master-port", 29500, "")
	fs.StringVar(&l.logDir, "log-dir", "", "")
	fs.StringVar(&l.tee, "tee", "0", "")
	for _, ignored := range []string{"max-restarts", "rdzv-backend", "rdzv-endpoint", "rdzv-id", "rdzv-conf", "role", "local-ranks-filter", "redirects", "monitor-interval"} {
		fs.String(ignored, "", "")
	}
	if err := fs.Parse(argv[1:]); err != nil {
		return launch{}, fmt.Errorf("stand-in for torch.distributed.run: %w", err)
	}
	rest := fs.Args()
	if len(rest) == 0 {
		return launch{}, errors.New("stand-in for torch.distributed.run: no script")
	}
	l.script, l.args = rest[0], rest[1:]
	return l, nil
}

// Launch acts as torch.distributed.run on one node: it starts a process for each rank,
// waits for them, and reports the first that failed as torchelastic does. argv is the
// command line after "uv"; self is this program, with the arguments that make it call
// Rank.
func Launch(ctx context.Context, argv, self []string, stdout, stderr io.Writer) int {
	l, err := parseLaunch(argv)
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 2
	}
	ctx, kill := context.WithCancel(ctx)
	defer kill()
	var mu sync.Mutex
	var first *rankEnd
	var wg sync.WaitGroup
	for local := range l.nproc {
		wg.Go(func() {
			end := l.runRank(ctx, self, local, stdout, stderr)
			if end.err == nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if first == nil {
				first = &end
				// torchelastic ends the other ranks once one has failed. The delay lets
				// them notice the failure themselves, as they do if their collectives
				// time out first.
				time.AfterFunc(4*time.Second, kill)
			}
		})
	}
	wg.Wait()
	if first == nil {
		return 0
	}
	fmt.Fprintf(stderr, "E%s torch/distributed/elastic/multiprocessing/api.py:882] failed (exitcode: %d) local_rank: %d (pid: %d) of binary: python\n",
		time.Now().Format("0102 15:04:05.000"), first.code, first.local, first.pid)
	fmt.Fprintf(stderr, "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\n%s\n%s FAILED\n%s\nRoot Cause (first observed failure):\n[0]:\n  time      : %s\n  host      : %s\n  rank      : %d (local_rank: %d)\n  exitcode  : %d (pid: %d)\n%s\n",
		strings.Repeat("=", 60), l.script, strings.Repeat("-", 60),
		first.at.Format("2006-01-02_15:04:05"), hostname(), first.rank, first.local, first.code, first.pid, strings.Repeat("=", 60))
	return 1
}

// A rankEnd is how a rank's process ended.
type rankEnd struct {
	local, rank, pid, code int
	at                     time.Time
	err                    error
}

func (l launch) runRank(ctx context.Context, self []string, local int, stdout, stderr io.Writer) rankEnd {
	rank := l.nodeRank*l.nproc + local
	cmd := exec.CommandContext(ctx, self[0], append(self[1:], l.args...)...)
	cmd.Env = append(os.Environ(),
		"RANK="+strconv.Itoa(rank), "LOCAL_RANK="+strconv.Itoa(local),
		"WORLD_SIZE="+strconv.Itoa(l.nnodes*l.nproc), "LOCAL_WORLD_SIZE="+strconv.Itoa(l.nproc),
		"MASTER_ADDR="+l.addr, "MASTER_PORT="+strconv.Itoa(l.port))
	prefix := ""
	if l.tee != "0" && l.tee != "" {
		prefix = fmt.Sprintf("[default%d]:", local)
	}
	end := rankEnd{local: local, rank: rank, at: time.Now()}
	var files []io.Closer
	sink := func(name string, w io.Writer) io.Writer {
		out := io.Writer(&prefixWriter{w: w, prefix: prefix})
		if l.logDir == "" {
			return out
		}
		dir := filepath.Join(l.logDir, "demo", "attempt_0", strconv.Itoa(local))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return out
		}
		f, err := os.Create(filepath.Join(dir, name+".log"))
		if err != nil {
			return out
		}
		files = append(files, f)
		return io.MultiWriter(f, out)
	}
	cmd.Stdout, cmd.Stderr = sink("stdout", stdout), sink("stderr", stderr)
	defer func() {
		for _, f := range files {
			f.Close()
		}
	}()
	end.err = cmd.Start()
	if end.err == nil {
		end.pid = cmd.Process.Pid
		end.err = cmd.Wait()
	}
	end.at = time.Now()
	end.code = 1
	if exit, ok := errors.AsType[*exec.ExitError](end.err); ok {
		end.code = exit.ExitCode()
	}
	return end
}

// writeMu keeps lines of several ranks from mixing on one stream.
var writeMu sync.Mutex

// A prefixWriter writes whole lines, each after a prefix.
type prefixWriter struct {
	w      io.Writer
	prefix string
	rest   []byte
}

func (p *prefixWriter) Write(b []byte) (int, error) {
	p.rest = append(p.rest, b...)
	for {
		advance, line, _ := bufio.ScanLines(p.rest, false)
		if advance == 0 {
			return len(b), nil
		}
		writeMu.Lock()
		_, err := fmt.Fprintf(p.w, "%s%s\n", p.prefix, line)
		writeMu.Unlock()
		p.rest = p.rest[advance:]
		if err != nil {
			return len(b), err
		}
	}
}

func hostname() string {
	if n := os.Getenv("SLURMD_NODENAME"); n != "" {
		return n
	}
	n, _ := os.Hostname()
	return n
}
