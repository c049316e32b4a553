// Package flightrecorder reads the dumps of PyTorch's NCCL flight recorder, and finds
// the collective that some ranks wait in and the ranks that never entered it. Nothing
// in a dump is executed.
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

// DumpName matches the names of flight recorder dumps
// (TORCH_NCCL_DEBUG_INFO_TEMP_FILE and its rank; comm_lib since PyTorch 2.5).
// The scripts that this program renders name them flight-recorder-RANK.
var DumpName = lazy.New(`(?:^|[/_-])(?:(?:nccl_trace|comm_lib_trace|flight[_-]?recorder|fr_trace)[\w.-]*?rank[_-]?|` +
	`flight-recorder-)(\d{1,6})(?:\.(?:pkl|pickle))?$`)

// RankAtEnd is the rank that ends the name of every dump. What stands before it
// is the user's choice (TORCH_NCCL_DEBUG_INFO_TEMP_FILE, TORCH_FR_DUMP_TEMP_FILE).
var RankAtEnd = lazy.New(`(\d{1,6})(?:\.(?:pkl|pickle|json))?$`)

// IsDump reports whether a file of any name holds a flight recorder dump, by its
// first bytes: a pickle or JSON that names the recorder's own keys.
func IsDump(name string, head []byte) bool {
	if !RankAtEnd.MatchString(name) || len(head) == 0 || head[0] != 0x80 && head[0] != '{' {
		return false
	}
	for _, key := range []string{"pg_config", "pg_status", "nccl_version", "comm_lib_version", "nccl_comm_state"} {
		if bytes.Contains(head, []byte(key)) {
			return true
		}
	}
	return false
}

// decodeDump reads a dump in either of its formats: pickle, or the JSON that
// PyTorch writes since 2.5 where it is asked to.
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
	return likePickle(v), nil
}

// likePickle gives a JSON value the types that a pickle's has.
func likePickle(v any) any {
	switch x := v.(type) {
	case map[string]any:
		d := &pickle.Dict{}
		for k, e := range x {
			d.Keys, d.Values = append(d.Keys, k), append(d.Values, likePickle(e))
		}
		return d
	case []any:
		items := make([]any, len(x))
		for i, e := range x {
			items[i] = likePickle(e)
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

// keyText is a group's id or name as text: containers make none.
func keyText(v any) string {
	switch v.(type) {
	case string, int64, bool, float64, nil:
		return fmt.Sprint(v)
	}
	return "?"
}

// dumpReader bounds what a dump may build.
var dumpReader = pickle.Reader{Items: 4 << 20, String: 1 << 20, Plain: true}

// maxDump bounds one flight recorder dump.
const maxDump = 64 << 20

// A Recording is what one rank's flight recorder holds of its collectives
// (torch/csrc/distributed/c10d/FlightRecorder.cpp).
type Recording struct {
	Rank   int                    `json:"rank"`
	Groups map[string]*groupState `json:"groups"`
}

// A groupState is how far a rank came in one process group.
type groupState struct {
	Enqueued int64  `json:"enqueued"` // the last collective that the rank entered
	Waiting  int64  `json:"waiting"`  // the first that did not complete; 0 where all did
	Op       string `json:"op"`
	Members  []int  `json:"members"`
}

// Read reads a dump; nothing in it is executed.
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
				members[keyText(config.Keys[i])] = rankList(d.Get("ranks"))
			}
		}
	}
	if entries, ok := top.Get("entries").(*pickle.List); ok {
		for _, e := range entries.Items {
			if d, ok := e.(*pickle.Dict); ok {
				r.entry(d)
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

// entry adds one collective to its group.
func (r *Recording) entry(d *pickle.Dict) {
	if p2p, _ := d.Get("is_p2p").(bool); p2p {
		return
	}
	id := keyText(d.Get("pg_id"))
	if named, ok := d.Get("process_group").(*pickle.List); ok && len(named.Items) > 0 { // its name and description
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

// rankList reads "[0, 1, 2]" or a list.
func rankList(v any) (ranks []int) {
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

// A Missed collective is one that some ranks wait in and one never entered.
type Missed struct {
	Rank    int   // the first of ranks
	Ranks   []int // that never entered it
	Group   string
	Seq     int64
	Op      string
	Waiting int // ranks that wait in it
}

// WhoMissed finds, over all recordings, the rank that most others wait for:
// it did not enter the earliest collective that did not complete. A rank
// without a recording counts only where its group names it.
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
