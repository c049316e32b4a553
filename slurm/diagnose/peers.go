package diagnose

import (
	"sort"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// NCCL names peers by address; which node has an address it prints at start
// (bootstrap.cc, net_ib.cc, net_socket.cc: "Using eth0:10.1.2.3<0>").
var (
	ownAddress  = lazy.New(`(?:Using|OOB|interface) (?:\[\d+\])?([A-Za-z][\w.-]*):([0-9a-f.:]+)<\d+>`)
	peerAddress = lazy.New(`(?:to|from peer|remote peer|peer|returned from) \[?([0-9a-f.:]*[0-9a-f])\]?<\d+>`)
)

// peerOf returns the address that a connection error names, and its node where
// the logs or the cluster know it.
func (j *job) peerOf(text string) (address, node string) {
	m := peerAddress.FindStringSubmatch(text)
	if m == nil {
		return "", ""
	}
	address = strings.TrimPrefix(m[1], "::ffff:")
	for _, f := range j.files {
		if h := f.addresses[address]; h != "" {
			return address, h
		}
	}
	return address, j.given.Addresses[address]
}

// differing names the start markers, such as commit or argv, that are not the
// same on all nodes.
func (j *job) differing() (names []string) {
	values := map[string]map[string]bool{}
	for _, f := range j.files {
		for name, v := range f.markers {
			if values[name] == nil {
				values[name] = map[string]bool{}
			}
			values[name][v] = true
		}
	}
	for _, n := range j.nodeStarts() {
		for name, v := range n.with {
			if values[name] == nil {
				values[name] = map[string]bool{}
			}
			values[name][v] = true
		}
	}
	for name, vs := range values {
		if len(vs) > 1 {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	return names
}
