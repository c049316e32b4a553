package local

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/slurm"
)

// nodeName is the name of the n-th node, from 1.
func nodeName(n int) string { return "local" + strconv.Itoa(n) }

// nodeNumber returns n for the name or the address of the n-th node.
func nodeNumber(name string) (int, bool) {
	if digits, ok := strings.CutPrefix(name, "local"); ok {
		n, err := strconv.Atoi(digits)
		return n, err == nil && n >= 1
	}
	if ip := net.ParseIP(name).To4(); ip != nil && ip[0] == 127 && ip[1] == 0 && ip[2] >= 1 {
		return int(ip[2]-1)*250 + int(ip[3]), true
	}
	return 0, false
}

// nodeAddress is what a node's name must be turned into for a program that
// connects to it: names such as local1 resolve nowhere, while on Linux all of
// 127/8 is this machine. Elsewhere there is only one loopback address.
func nodeAddress(n int) string {
	if runtime.GOOS != "linux" {
		return "127.0.0.1"
	}
	return fmt.Sprintf("127.0.%d.%d", 1+(n-1)/250, 1+(n-1)%250)
}

// hostname is what `scontrol show hostnames` prints for node: the scripts that
// ask it want to connect.
func hostname(node string) string {
	if n, ok := nodeNumber(node); ok && strings.HasPrefix(node, "local") {
		return nodeAddress(n)
	}
	return node
}

// allocate gives want whole nodes of total to id, the lowest free ones; nil
// where too few are free.
func (s store) allocate(id slurm.JobID, want, total int) (nodes []string, err error) {
	dir := filepath.Join(s.dir, "nodes")
	err = s.lock(func() error {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		for n := 1; n <= total && len(nodes) < want; n++ {
			if s.isFree(nodeName(n)) {
				nodes = append(nodes, nodeName(n))
			}
		}
		if len(nodes) < want {
			nodes = nil
			return nil
		}
		for _, node := range nodes {
			if err := writeFile(filepath.Join(dir, node), []byte(id)); err != nil {
				return err
			}
		}
		return nil
	})
	return nodes, err
}

// isFree reports whether no living job has node.
func (s store) isFree(node string) bool {
	text, err := os.ReadFile(filepath.Join(s.dir, "nodes", node))
	if errors.Is(err, fs.ErrNotExist) {
		return true
	}
	holder := slurm.JobID(text)
	if err != nil || !slurm.IsJobID(string(holder)) {
		return err == nil
	}
	r, err := s.record(holder)
	if err != nil || r.Job.State.Ended() {
		return true
	}
	// Between the allocation and the start of its runner a job is pending.
	return !isHeld(s.runLock(holder)) && !isHeld(s.supervisorLock(holder))
}

// free gives back the nodes that id has.
func (s store) free(id slurm.JobID, nodes []string) {
	_ = s.lock(func() error {
		for _, node := range nodes {
			path := filepath.Join(s.dir, "nodes", node)
			if text, err := os.ReadFile(path); err == nil && slurm.JobID(text) == id {
				os.Remove(path)
			}
		}
		return nil
	})
}

func (s store) supervisorLock(id slurm.JobID) string {
	return filepath.Join(s.jobDir(id), "supervisor.lock")
}

func (s store) runLock(id slurm.JobID) string {
	return filepath.Join(s.jobDir(id), string(id)+".run.lock")
}

// freePort finds a port for the job's MASTER_PORT below the range that the
// system gives to outgoing connections, starting at one of the job's own: other
// people's first jobs on this machine start at others.
func (s store) freePort(id int) int {
	start := int(crc32.ChecksumIEEE([]byte(s.dir))%10000) + id*7
	for i := range 2000 {
		port := 20000 + (start+i)%10000
		if l, err := net.Listen("tcp", ":"+strconv.Itoa(port)); err == nil {
			_ = l.Close()
			return port
		}
	}
	return 29500
}
