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

// nodeAddress returns the address of the n-th node. Programs that connect need it
// because names such as local1 resolve nowhere. On Linux all of 127/8 is this machine;
// other systems have only one loopback address.
func nodeAddress(n int) string {
	if runtime.GOOS != "linux" {
		return "127.0.0.1"
	}
	return fmt.Sprintf("127.0.%d.%d", 1+(n-1)/250, 1+(n-1)%250)
}

// hostname returns the line of `scontrol show hostnames` for node: an address, because
// the scripts that ask want to connect.
func hostname(node string) string {
	if n, ok := nodeNumber(node); ok && strings.HasPrefix(node, "local") {
		return nodeAddress(n)
	}
	return node
}

// allocate gives the want lowest free nodes of total to id; nil where too few are free.
func (s store) allocate(id slurm.JobID, want, total int) (nodes []string, err error) {
	dir := filepath.Join(s.dir, "nodes")
	err = s.lock(func() error {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		nodes = s.freeNodes(want, total)
		for _, node := range nodes {
			if err := writeFile(filepath.Join(dir, node), []byte(id)); err != nil {
				return err
			}
		}
		return nil
	})
	return nodes, err
}

// freeNodes returns the want lowest free nodes of total; nil where too few are free.
func (s store) freeNodes(want, total int) (nodes []string) {
	for n := 1; n <= total && len(nodes) < want; n++ {
		if s.isFree(nodeName(n)) {
			nodes = append(nodes, nodeName(n))
		}
	}
	if len(nodes) < want {
		return nil
	}
	return nodes
}

// isFree reports whether no living job holds node.
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
	// Between the allocation and the start of its runner a job is still pending.
	return !isHeld(s.runLock(holder)) && !isHeld(s.supervisorLock(holder))
}

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

// freePort finds a free port for the job's MASTER_PORT below the range of outgoing
// connections. The search starts at a port that depends on the store and the job, so
// that the first jobs of several people on this machine do not start at the same port.
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
