// Package flightrecorder reads dumps of PyTorch's NCCL flight recorder. It finds the collective in
// which some ranks wait, and the ranks that never entered it. Reading a dump executes nothing in it.
package flightrecorder

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/internal/pickle"
)

// DumpName matches the file names of flight recorder dumps: TORCH_FR_DUMP_TEMP_FILE (TORCH_NCCL_DEBUG_INFO_TEMP_FILE) followed by
// the rank (comm_lib since PyTorch 2.5). Rendered scripts name dumps flight-recorder-RANK.
var DumpName = lazy.New(`(?:^|[/_-])(?:(?:nccl_trace|comm_lib_trace|flight[_-]?recorder|fr_trace)[\w.-]*?rank[_-]?|` +
	`flight-recorder-)(\d{1,6})(?:\.(?:pkl|pickle))?$`)

// RankAtEnd matches the rank at the end of a dump's name. The user may choose the rest of the name
// (TORCH_NCCL_DEBUG_INFO_TEMP_FILE, TORCH_FR_DUMP_TEMP_FILE).
var RankAtEnd = lazy.New(`(\d{1,6})(?:\.(?:pkl|pickle|json))?$`)

// IsDump reports whether a file whose name ends with a rank holds a flight recorder dump, judging by
// its first bytes: a pickle or JSON that has the recorder's own keys.
func IsDump(name string, head []byte) bool {
	if !RankAtEnd.MatchString(name) || len(head) == 0 || head[0] != 0x80 && head[0] != '{' {
		return false
	}
	keys := []string{"pg_config", "pg_status", "nccl_version", "comm_lib_version", "nccl_comm_state"}
	return slices.ContainsFunc(keys, func(key string) bool { return bytes.Contains(head, []byte(key)) })
}

// decodeDump decodes a dump in either of its formats: pickle, or the JSON that PyTorch can write since
// 2.5.
func decodeDump(b []byte) (any, error) {
	if len(b) == 0 || b[0] != '{' {
		return dumpReader.Read(bytes.NewReader(b))
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	return toPickleTypes(v), nil
}

// toPickleTypes converts a JSON value to the types that a decoded pickle has.
func toPickleTypes(v any) any {
	switch x := v.(type) {
	case map[string]any:
		d := &pickle.Dict{}
		for k, e := range x {
			d.Keys, d.Values = append(d.Keys, k), append(d.Values, toPickleTypes(e))
		}
		return d
	case []any:
		items := make([]any, len(x))
		for i, e := range x {
			items[i] = toPickleTypes(e)
		}
		return &pickle.List{Items: items}
	case json.Number:
		if n, err := x.Int64(); err == nil {
			return n
		}
		f, _ := x.Float64()
		return f
	}
	return v
}

// keyText returns a group's id or name as text, and "?" for a container.
func keyText(v any) string {
	switch v.(type) {
	case string, int64, bool, float64, nil:
		return fmt.Sprint(v)
	}
	return "?"
}

// dumpReader limits the objects that a dump may create.
var dumpReader = pickle.Reader{Items: 4 << 20, String: 1 << 20, Plain: true}

// maxDump bounds the bytes of one dump that are read.
const maxDump = 64 << 20

// A Recording is one rank's flight recorder dump: how far the rank got in each process group
// (torch/csrc/distributed/c10d/FlightRecorder.cpp).
type Recording struct {
	Rank   int                    `json:"rank"`
	Groups map[string]*groupState `json:"groups"`
}

// A groupState says how far a rank got in one process group.
type groupState struct {
	Enqueued int64  `json:"enqueued"` // sequence number of the last collective that the rank entered
	Waiting  int64  `json:"waiting"`  // sequence number of the first collective that did not complete; 0 where all did
	Op       string `json:"op"`
	Members  []int  `json:"members"`
}

// Read reads a dump. The rank comes from the end of name. Reading executes nothing in the dump.
func Read(name string, in io.Reader) (*Recording, error) {
	m := RankAtEnd.FindStringSubmatch(name)
	if m == nil {
		return nil, lang.Text{
			EN: "no rank at the end of a flight recorder dump's name",
			ZH: "flight recorder 文件名末尾没有 rank 编号",
		}.Err()
	}
	rank, _ := strconv.Atoi(m[1])
	b, err := io.ReadAll(io.LimitReader(in, maxDump))
	if err != nil {
		return nil, err
	}
	v, err := decodeDump(b)
	if err != nil {
		return nil, err
	}
	top, ok := v.(*pickle.Dict)
	if !ok {
		return nil, lang.Text{EN: "not a flight recorder dump: no dictionary", ZH: "不是 flight recorder 文件：其中没有字典"}.Err()
	}
	r := &Recording{Rank: rank, Groups: map[string]*groupState{}}
	members := map[string][]int{}
	if config, ok := top.Get("pg_config").(*pickle.Dict); ok {
		for i, c := range config.Values {
			if d, ok := c.(*pickle.Dict); ok {
				members[keyText(config.Keys[i])] = parseRanks(d.Get("ranks"))
			}
		}
	}
	if entries, ok := top.Get("entries").(*pickle.List); ok {
		for _, e := range entries.Items {
			if d, ok := e.(*pickle.Dict); ok {
				r.addEntry(d)
			}
		}
	}
	if status, ok := top.Get("pg_status").(*pickle.Dict); ok {
		for i, s := range status.Values {
			d, ok := s.(*pickle.Dict)
			if g := r.Groups[keyText(status.Keys[i])]; ok && g != nil {
				if n, ok := d.Get("last_enqueued_collective").(int64); ok {
					g.Enqueued = max(g.Enqueued, n)
				}
			}
		}
	}
	for id, g := range r.Groups {
		g.Members = members[id]
	}
	return r, nil
}

// addEntry records one collective in the state of its group.
func (r *Recording) addEntry(d *pickle.Dict) {
	if p2p, _ := d.Get("is_p2p").(bool); p2p {
		return
	}
	id := keyText(d.Get("pg_id"))
	if named, ok := d.Get("process_group").(*pickle.List); ok && len(named.Items) > 0 { // a list of name and description
		id = keyText(named.Items[0])
	}
	seq, ok := d.Get("collective_seq_id").(int64)
	if !ok {
		seq, ok = d.Get("seq_id").(int64)
	}
	if !ok {
		return
	}
	g := r.Groups[id]
	if g == nil {
		g = &groupState{}
		r.Groups[id] = g
	}
	g.Enqueued = max(g.Enqueued, seq)
	state, _ := d.Get("state").(string)
	if state != "completed" && (g.Waiting == 0 || seq < g.Waiting) {
		g.Waiting = seq
		name, _ := d.Get("profiling_name").(string)
		g.Op = strings.TrimPrefix(name, "nccl:")
	}
}

// parseRanks parses "[0, 1, 2]" or a list of numbers.
func parseRanks(v any) (ranks []int) {
	switch l := v.(type) {
	case string:
		for _, w := range strings.FieldsFunc(l, func(r rune) bool { return r < '0' || r > '9' }) {
			n, _ := strconv.Atoi(w)
			ranks = append(ranks, n)
		}
	case *pickle.List:
		for _, n := range l.Items {
			if k, ok := n.(int64); ok {
				ranks = append(ranks, int(k))
			}
		}
	}
	return ranks
}

// A Missed is a collective in which some ranks wait and which at least one rank never entered.
type Missed struct {
	Rank    int   // the first of Ranks
	Ranks   []int // the ranks that never entered the collective
	Group   string
	Seq     int64
	Op      string
	Waiting int // how many ranks wait in it
}

// WhoMissed finds, over all recordings, the rank for which most others wait: it did not enter the
// earliest incomplete collective of its group. A rank without a recording counts only if a group lists
// it as a member.
func WhoMissed(all []*Recording) (Missed, bool) {
	byRank := map[int]*Recording{}
	groups := map[string]bool{}
	for _, r := range all {
		byRank[r.Rank] = r
		for id := range r.Groups {
			groups[id] = true
		}
	}
	ids := slices.Sorted(maps.Keys(groups))
	var best Missed
	for _, id := range ids {
		first := Missed{Group: id}
		members := map[int]bool{}
		for _, r := range all {
			g := r.Groups[id]
			if g == nil {
				continue
			}
			members[r.Rank] = true
			for _, m := range g.Members {
				members[m] = true
			}
			switch {
			case g.Waiting == 0:
			case first.Seq == 0 || g.Waiting < first.Seq:
				first.Seq, first.Op, first.Waiting = g.Waiting, g.Op, 1
			case g.Waiting == first.Seq:
				first.Waiting++
			}
		}
		for _, m := range slices.Sorted(maps.Keys(members)) {
			if r := byRank[m]; r == nil || r.Groups[id] == nil || r.Groups[id].Enqueued < first.Seq {
				first.Ranks = append(first.Ranks, m)
			}
		}
		if len(first.Ranks) > 0 && first.Waiting > best.Waiting {
			best = first
			best.Rank = first.Ranks[0]
		}
	}
	return best, best.Waiting > 0
}
