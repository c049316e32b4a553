package demo

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
)

// A trainer is one rank of the stand-in training.
type trainer struct {
	rank, local, world int
	micro, global      int
	seq, hidden        int
	layers, tp, pp     int
	iters              int
	vocab              int
	save               string
	stdout, stderr     io.Writer
	tick, timeout      time.Duration
}

// Rank acts as one rank of a GPT pretraining. It stands in for the GPU: the memory that
// it "allocates" follows Megatron's activation formula, the loss is made up, and one
// rank of the last node has less memory than the others, as if somebody had left a
// process on its GPU. The synchronisation is real: every iteration is a barrier over
// TCP at MASTER_ADDR:MASTER_PORT, where a dead rank is missed.
func Rank(args []string, stdout, stderr io.Writer) int {
	t := trainer{
		rank: envInt("RANK"), local: envInt("LOCAL_RANK"), world: max(1, envInt("WORLD_SIZE")),
		stdout: stdout, stderr: stderr,
		tick: 60 * time.Millisecond, timeout: 1500 * time.Millisecond,
	}
	flag := func(name string, otherwise int) int { return megatron.NumberOf(args, name, otherwise) }
	t.micro, t.global = flag("--micro-batch-size", 1), flag("--global-batch-size", 16)
	t.seq, t.hidden = flag("--seq-length", 2048), flag("--hidden-size", 1024)
	t.layers, t.tp, t.pp = flag("--num-layers", 24), flag("--tensor-model-parallel-size", 1), flag("--pipeline-model-parallel-size", 1)
	t.iters, t.vocab = flag("--train-iters", 20), 51200
	t.save = megatron.LastOf(args, "--save")
	return t.train()
}

func envInt(name string) int {
	n, _ := strconv.Atoi(os.Getenv(name))
	return n
}

const gib = 1 << 30

// activations returns the bytes that one rank keeps for the backward pass, by the
// formula of Korthikanti et al., "Reducing Activation Recomputation in Large
// Transformer Models" (arXiv 2205.05198, equation 2, attention recomputed as flash
// attention does), plus the logits in fp32.
func (t trainer) activations() float64 {
	s, b, h, tp := float64(t.seq), float64(t.micro), float64(t.hidden), float64(t.tp)
	perLayer := s * b * h * (10 + 24/tp)
	return perLayer*float64(t.layers)/float64(t.pp) + 4*s*b*float64(t.vocab)/tp
}

func (t trainer) train() int {
	if t.rank == 0 {
		fmt.Fprintf(t.stdout, "using world size: %d, data-parallel size: %d, tensor-model-parallel size: %d, pipeline-model-parallel size: %d (stand-in for a GPU training)\n", t.world, t.world/max(1, t.tp*t.pp), t.tp, t.pp)
		fmt.Fprintln(t.stdout, "[before the start of training step] datetime:", time.Now().Format(time.DateTime))
	}
	step, err := joinBarrier(t.rank, t.world, net.JoinHostPort(os.Getenv("MASTER_ADDR"), os.Getenv("MASTER_PORT")), 20*time.Second)
	if err != nil {
		fmt.Fprintf(t.stderr, "torch.distributed.DistNetworkError: The client socket has timed out after 20000ms while trying to connect to (%s, %s).\n", os.Getenv("MASTER_ADDR"), os.Getenv("MASTER_PORT"))
		return 1
	}
	defer step.close()
	capacity := 79.11 * gib
	if t.rank == t.world-5 {
		capacity -= 24 * gib
	}
	noise := rand.New(rand.NewPCG(7, uint64(t.rank)))
	for it := 1; it <= t.iters; it++ {
		start := time.Now()
		time.Sleep(t.tick)
		// In the first iterations the allocator still finds memory.
		if it > 3 && t.activations()+18*gib > capacity {
			t.outOfMemory(capacity)
			return 1
		}
		if err := step.wait(it, t.timeout); err != nil {
			t.watchdog(it)
			return 1
		}
		if t.rank == t.world-1 {
			t.logIteration(it, time.Since(start), noise)
		}
	}
	if t.rank == 0 {
		fmt.Fprintln(t.stdout, "[after training is done] datetime:", time.Now().Format(time.DateTime))
		t.result()
		// An artifact watch saves the time after the result: here an evaluation that
		// nobody waits for.
		fmt.Fprintln(t.stdout, "evaluating on the validation set (the stand-in only sleeps)")
	}
	time.Sleep(30 * time.Second)
	return 0
}

// logIteration writes Megatron's progress line (megatron/training/training.py,
// training_log).
func (t trainer) logIteration(it int, took time.Duration, noise *rand.Rand) {
	loss := 2.2 + 8.6*math.Exp(-float64(it)/9) + noise.Float64()*0.12
	fmt.Fprintf(t.stdout, " [%s] iteration %8d/%8d | consumed samples: %12d | elapsed time per iteration (ms): %.1f | throughput per GPU (TFLOP/s/GPU): %.1f | learning rate: %.6E | global batch size: %5d | lm loss: %.6E | loss scale: 1.0 | grad norm: %.3f | number of skipped iterations:   0 | number of nan iterations:   0 |\n",
		time.Now().Format("2006-01-02 15:04:05.000000"), it, t.iters, it*t.global, float64(took.Microseconds())/1000,
		380+noise.Float64()*20, 1.5e-4*min(1, float64(it)/5), t.global, loss, 1+3*math.Exp(-float64(it)/6)+noise.Float64()*0.1)
}

// outOfMemory writes PyTorch's message for an allocation that fails
// (c10/cuda/CUDACachingAllocator.cpp).
func (t trainer) outOfMemory(capacity float64) {
	asked := 4 * float64(t.seq) * float64(t.micro) * float64(t.vocab) / float64(t.tp)
	used := capacity - asked/3
	p := fmt.Sprintf("[rank%d]: ", t.rank)
	fmt.Fprint(t.stderr, p+"Traceback (most recent call last):\n"+
		p+`  File "`+cwd()+`/pretrain_gpt.py", line 298, in <module>`+"\n"+
		p+"    pretrain(\n"+
		p+`  File "`+cwd()+`/megatron/training/training.py", line 2104, in train_step`+"\n"+
		p+"    losses_reduced = forward_backward_func(\n"+
		p+`  File "`+cwd()+`/megatron/core/tensor_parallel/cross_entropy.py", line 37, in calculate_logits_max`+"\n"+
		p+"    vocab_parallel_logits = vocab_parallel_logits.float()\n"+
		fmt.Sprintf("%storch.OutOfMemoryError: CUDA out of memory. Tried to allocate %.2f GiB. GPU %d has a total capacity of %.2f GiB of which %.2f GiB is free. Process %d has %.2f GiB memory in use. Of the allocated memory %.2f GiB is allocated by PyTorch, and 1.21 GiB is reserved by PyTorch but unallocated.\n",
			p, asked/gib, t.local, capacity/gib, asked/3/gib, os.Getpid(), used/gib, used/gib-1.21))
}

// watchdog writes the message of a rank whose peer is gone
// (torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp).
func (t trainer) watchdog(it int) {
	now := time.Now().Format("0102 15:04:05.000000000")
	seq := it*4 + 1
	ms := t.timeout.Milliseconds()
	fmt.Fprintf(t.stderr, "[rank%d]:[E%s ProcessGroupNCCL.cpp:685] [Rank %d] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=%d, OpType=ALLREDUCE, NumelIn=1048576, NumelOut=1048576, Timeout(ms)=%d) ran for %d milliseconds before timing out.\n", t.rank, now, t.rank, seq, ms, ms+12)
	fmt.Fprintf(t.stderr, "[rank%d]:[E%s ProcessGroupNCCL.cpp:1933] [PG ID 0 PG GUID 0(default_pg) Rank %d] Process group watchdog thread terminated with exception: [Rank %d] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=%d, OpType=ALLREDUCE, NumelIn=1048576, NumelOut=1048576, Timeout(ms)=%d) ran for %d milliseconds before timing out.\n", t.rank, now, t.rank, t.rank, seq, ms, ms+12)
}

// result writes the artifact of a run: a JSON summary by rank 0.
func (t trainer) result() {
	dir := t.save
	if dir == "" {
		return
	}
	_ = os.MkdirAll(dir, 0o755)
	b, _ := json.Marshal(map[string]any{"iterations": t.iters, "world_size": t.world, "stand_in": true})
	tmp := filepath.Join(dir, ".metrics.json.tmp")
	if os.WriteFile(tmp, b, 0o644) == nil {
		_ = os.Rename(tmp, filepath.Join(dir, "metrics.json"))
	}
}

func cwd() string {
	d, _ := os.Getwd()
	return d
}

// A barrier synchronises ranks: rank 0 serves; every rank reports the iteration that it
// has reached and waits for the others.
type barrier struct {
	conn net.Conn
	r    *bufio.Reader
	stop func()
}

func joinBarrier(rank, world int, addr string, timeout time.Duration) (*barrier, error) {
	b := &barrier{stop: func() {}}
	if rank == 0 {
		ln, err := net.Listen("tcp", addr)
		if err != nil {
			return nil, err
		}
		b.stop = func() { _ = ln.Close() }
		go serveBarrier(ln, world)
	}
	deadline := time.Now().Add(timeout)
	for {
		conn, err := net.DialTimeout("tcp", addr, time.Second)
		if err == nil {
			_, err = fmt.Fprintln(conn, arrival)
		}
		if err == nil {
			b.conn, b.r = conn, bufio.NewReader(conn)
			return b, nil
		}
		if time.Now().After(deadline) {
			b.stop()
			return nil, err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// serveBarrier releases all ranks once each of them has arrived.
func serveBarrier(ln net.Listener, world int) {
	var conns []net.Conn
	var readers []*bufio.Reader
	for len(conns) < world {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		// On a busy machine a rank gives a connection up and tries again: only one in
		// which it has spoken counts.
		r := bufio.NewReader(c)
		if word, err := r.ReadString('\n'); err != nil || strings.TrimSpace(word) != arrival {
			_ = c.Close()
			continue
		}
		conns, readers = append(conns, c), append(readers, r)
	}
	arrived := make(chan bool)
	for _, r := range readers {
		go func() {
			for {
				_, err := r.ReadString('\n')
				arrived <- err == nil
				if err != nil {
					return
				}
			}
		}()
	}
	for {
		word := goOn
		for range world {
			if !<-arrived {
				word = peerDied
				break
			}
		}
		for _, c := range conns {
			fmt.Fprintln(c, word)
		}
		if word == peerDied {
			for range arrived { // the others end one by one
			}
		}
	}
}

// A rank's first word to the barrier, and the barrier's answers to its ranks.
const (
	arrival  = "here"
	goOn     = "go on"
	peerDied = "a peer died"
)

// wait acts as a collective: it takes as long as the slowest rank. If a rank is dead,
// it fails after timeout. A rank that is merely slow, on a busy machine, is waited for.
func (b *barrier) wait(it int, timeout time.Duration) error {
	if _, err := fmt.Fprintln(b.conn, it); err != nil {
		return err
	}
	word, err := b.r.ReadString('\n')
	if strings.TrimSpace(word) == peerDied {
		time.Sleep(timeout)
		return errors.New(peerDied)
	}
	return err
}

func (b *barrier) close() {
	b.conn.Close()
	b.stop()
}
