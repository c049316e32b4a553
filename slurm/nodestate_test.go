package slurm

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The API's base states and flags give the word that sinfo shows, and whether the node
// is usable and free.
func TestStatesOfNodesAsSinfoShowsThem(t *testing.T) {
	var b strings.Builder
	for _, given := range []string{
		"IDLE", "MIXED", "ALLOCATED", "DOWN", "UNKNOWN", "FUTURE",
		"IDLE COMPLETING", "MIXED COMPLETING", "ALLOCATED COMPLETING", "IDLE COMPLETING POWERING_DOWN",
		"IDLE DRAIN", "MIXED DRAIN", "ALLOCATED DRAIN", "IDLE DRAIN COMPLETING", "DOWN DRAIN", "IDLE DRAIN NOT_RESPONDING", "DOWN NOT_RESPONDING",
		"IDLE FAIL", "MIXED FAIL", "IDLE INVALID_REG DRAIN", "IDLE PLANNED", "MIXED PLANNED", "IDLE RESERVED", "IDLE BLOCKED", "IDLE PERFCTRS",
		"IDLE MAINTENANCE RESERVED", "ALLOCATED MAINTENANCE", "IDLE MAINTENANCE DRAIN", "DOWN MAINTENANCE", "IDLE MAINTENANCE NOT_RESPONDING",
		"IDLE REBOOT_REQUESTED", "MIXED REBOOT_REQUESTED", "IDLE REBOOT_ISSUED", "DOWN REBOOT_ISSUED",
		"IDLE CLOUD POWERED_DOWN", "IDLE CLOUD POWERED_DOWN NOT_RESPONDING", "IDLE POWERING_UP", "MIXED POWERING_UP", "ALLOCATED POWERING_UP",
		"IDLE POWERING_DOWN", "IDLE POWER_DOWN", "IDLE POWER_DOWN_ASAP", "MIXED POWER_DOWN_FORCE", "DOWN POWERED_DOWN", "IDLE NOT_RESPONDING",
	} {
		words := strings.Fields(given)
		state := nodeState(words[0], words[1:])
		n := Node{State: state}
		fmt.Fprintf(&b, "%s: %s usable=%v free=%v %s\n", given, state, n.Usable(), n.Free(), n.share())
		again, _ := stateWord(strings.ToLower(strings.Join(words, "+")))
		whole, _ := stateWord(state)
		require.Equal(t, whole, again, "as scontrol writes it: %s", given)
	}
	golden(t, "nodestates.txt", b.String())
}

// A node in power saving, booting or in maintenance is usable, and a node about to
// power down is not free.
func TestNoFalseAlarmOfAPlannedAbsence(t *testing.T) {
	for _, state := range []string{"idle~", "idle#", "idle%", "idle!", "mixed#", "allocated#", "mix~", "maint", "idle$", "alloc$", "reboot", "reboot^", "powering_down", "planned", "resv", "blocked"} {
		require.True(t, Node{State: state}.Usable(), state)
	}
	for _, state := range []string{"down", "down*", "idle*", "drain", "drng", "fail", "inval", "down~", "unknown", "future"} {
		require.False(t, Node{State: state}.Usable(), state)
	}
	for _, state := range []string{"idle%", "idle!", "idle#", "idle$", "idle*"} {
		require.NotContains(t, ExplainNode(state).Says.EN, "is free", state)
		require.NotContains(t, ExplainNode(state).Says.ZH, "空闲", state)
	}
	require.Contains(t, ExplainNode("idle~").Says.EN, "is free")
}

// golden compares text with a file of testdata, or writes the file with -update.
func golden(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if f := flag.Lookup("update"); f != nil && f.Value.String() == "true" {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), text, "run with -update and read the difference")
}

// Every form of Slurm's JSON gives the same partition: its limits, and how many of its
// nodes are free.
func TestPartitionFromJSONOfAllVersions(t *testing.T) {
	nodes := []Node{{Name: "n1", State: "mixed", GPUs: 8}, {Name: "n2", State: "idle", GPUs: 4}, {Name: "n3", State: "down"}, {Name: "other", State: "idle", GPUs: 16}}
	limit := int64(3600)
	want := Partition{
		Name: "dev", Default: true, Up: true, State: "up", TimeLimitS: &limit, MaxNodes: 2, Nodes: "n[1-3]",
		Allocated: 1, Idle: 1, Other: 1, Total: 3, GPUs: 8,
	}
	for version, text := range map[string]string{
		"22.05": `{"name":"dev","state":"UP","flags":["default"],"max_time_limit":60,"maximum_nodes_per_job":2,"nodes":"n[1-3]"}`,
		"23.11": `{"name":"dev","partition":{"state":["UP"]},"flags":["OTHER","DEFAULT"],"maximums":{"time":{"set":true,"number":60},"nodes":{"set":true,"number":2}},"nodes":{"configured":"n[1-3]"}}`,
	} {
		var m map[string]any
		require.NoError(t, json.Unmarshal([]byte(text), &m), version)
		require.Equal(t, want, PartitionFromJSON(m, nodes), version)
	}
	for text, most := range map[string]int{`{"maximum_nodes_per_job":-1}`: 0, `{"maximums":{"nodes":{"set":true,"infinite":true,"number":0}}}`: 0, `{"maximum_nodes_per_job":4294967295}`: 0} {
		var m map[string]any
		require.NoError(t, json.Unmarshal([]byte(text), &m))
		p := PartitionFromJSON(m, nodes)
		require.Equal(t, most, p.MaxNodes, text)
		require.True(t, p.Up, "one that does not tell is up")
		require.Nil(t, p.TimeLimitS)
		require.False(t, p.Default)
	}
}
