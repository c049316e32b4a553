package diagnose

import (
	"net/netip"
	"sort"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// peerAddress matches the address with which NCCL names a peer. NCCL prints each node's address at its
// start (bootstrap.cc, net_ib.cc, net_socket.cc: "Using eth0:10.1.2.3<0>").
var peerAddress = lazy.New(`(?:to|from peer|remote peer|peer|returned from) \[?([0-9a-f.:]*[0-9a-f])\]?(?:<\d+>|:\d+\b)`)

// answered matches the statuses of InfiniBand's completions in which no peer was unreachable: all but
// the exhausted retries, 12 and 13 (enum ibv_wc_status in infiniband/verbs.h).
var answered = lazy.New(`(?i)\bgot completion .*\b(?:status=|error )(?:\d|1[01])\b`)

// peerOf returns the address in a connection error, and its node if the logs or the cluster know it.
func (j *job) peerOf(text string) (address, node string) {
	if address = unreachable(text); address == "" {
		return "", ""
	}
	node = j.nodeOfAddress(address)
	if ip, err := netip.ParseAddr(address); node == "" && err == nil && ip.IsLoopback() {
		return "", "" // any node's name for itself
	}
	return address, node
}

// nodeOfAddress returns the node that has an address, or "" if neither the logs nor the cluster know it.
func (j *job) nodeOfAddress(address string) string {
	for _, f := range j.files {
		if h := f.Addresses[address]; h != "" {
			return h
		}
	}
	if ip, err := netip.ParseAddr(address); err == nil && ip.IsLoopback() {
		return ""
	}
	if node := j.given.Addresses[address]; node != "" || j.given.Resolve == nil {
		return node
	}
	for _, name := range j.given.Resolve(address) {
		if node := nodeOfName(name, j.nodes); node != "" {
			return node
		}
	}
	return ""
}

// unreachable returns the address of the peer that a connection error could not reach, or "".
func unreachable(text string) string {
	m := peerAddress.FindStringSubmatch(text)
	if m == nil || answered.MatchString(text) {
		return ""
	}
	return strings.TrimPrefix(m[1], "::ffff:")
}

// interfacePart matches what sites append to a node's name for each of its interfaces: gpu07-ib0,
// gpu07-hsn1, gpu07i.
var interfacePart = lazy.New(`(?i)[-_.]?(?:ib|ibs|hsn|opa|eth|en|eno|ens|bond|roce|mlx|data|mgmt|bmc|ipmi|i)\d*$`)

// nodeOfName returns the node of a host name, without its domain and interface part. If nodes is not
// empty it must contain the node.
func nodeOfName(name string, nodes map[string]int) string {
	name = strings.TrimSuffix(name, ".")
	host, _, _ := strings.Cut(name, ".")
	for _, one := range []string{name, host, interfacePart.ReplaceAllString(host, "")} {
		if nodes[one] > 0 {
			return one
		}
	}
	if len(nodes) > 0 {
		return ""
	}
	return interfacePart.ReplaceAllString(host, "")
}

// differingMarkers returns the start markers, such as commit or argv, that differ between nodes.
func (j *job) differingMarkers() (names []string) {
	values := map[string]map[string]struct{}{}
	add := func(markers map[string]string) {
		for name, v := range markers {
			if values[name] == nil {
				values[name] = map[string]struct{}{}
			}
			values[name][v] = struct{}{}
		}
	}
	for _, f := range j.files {
		add(f.Markers)
	}
	for _, n := range j.nodeStarts() {
		add(n.With)
	}
	for name, vs := range values {
		if len(vs) > 1 {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	return names
}
