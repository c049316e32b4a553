package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
)

// A release is one Megatron-LM release whose flags are known.
type release struct {
	// Name is "0.17.1" or "main"; Const is the name of the Go constant.
	Name   string `json:"release"`
	Const  string `json:"const"`
	Tag    string `json:"tag"`
	Commit string `json:"commit"`
	Date   string `json:"date"`
}

// A row is one flag definition of Megatron's parser.
type row struct {
	// Since and Until are the first and the last release with this definition;
	// empty means the oldest and the newest known release.
	Since    string   `json:"since,omitempty"`
	Until    string   `json:"until,omitempty"`
	Name     string   `json:"name"`
	Aliases  []string `json:"aliases,omitempty"`
	Dest     string   `json:"dest"`
	Type     string   `json:"type"`
	Action   string   `json:"action,omitempty"`
	Default  any      `json:"default,omitempty"`
	Choices  []any    `json:"choices,omitempty"`
	Nargs    any      `json:"nargs,omitempty"`
	Group    string   `json:"group"`
	OnlyWith bool     `json:"only_with_modelopt,omitempty"`

	first, last int // indexes of Since and Until
}

// A history holds the flags of every release. The oldest release comes first.
type history struct {
	releases []release
	rows     []row
}

// readHistory reads a JSON Lines file: a line for each release, then a line for
// each definition of a flag.
func readHistory(path string) (history, error) {
	var h history
	raw, err := os.ReadFile(path)
	if err != nil {
		return h, err
	}
	lines := bufio.NewScanner(bytes.NewReader(raw))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var rel release
		if err := json.Unmarshal(lines.Bytes(), &rel); err != nil {
			return h, err
		}
		if rel.Name != "" {
			h.releases = append(h.releases, rel)
			continue
		}
		var r row
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return h, err
		}
		r.first, r.last = 0, len(h.releases)-1
		if r.Since != "" {
			r.first = h.index(r.Since)
		}
		if r.Until != "" {
			r.last = h.index(r.Until)
		}
		if r.first < 0 || r.last < r.first {
			return h, fmt.Errorf("%s: no releases from %q to %q", r.Name, r.Since, r.Until)
		}
		h.rows = append(h.rows, r)
	}
	return h, lines.Err()
}

func (h history) index(name string) int {
	return slices.IndexFunc(h.releases, func(r release) bool { return r.Name == name })
}

// write writes the file that readHistory reads.
func (h history) write(path string) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	for _, rel := range h.releases {
		if err := enc.Encode(rel); err != nil {
			return err
		}
	}
	for _, r := range h.rows {
		r.Since, r.Until = "", ""
		if r.first > 0 {
			r.Since = h.releases[r.first].Name
		}
		if r.last < len(h.releases)-1 {
			r.Until = h.releases[r.last].Name
		}
		if err := enc.Encode(r); err != nil {
			return err
		}
	}
	return os.WriteFile(path, b.Bytes(), 0o644)
}

// add inserts a release with its flags before main, or replaces the release of the
// same name.
func (h history) add(rel release, flags []row) history {
	tables := make([][]row, len(h.releases))
	for _, r := range h.rows {
		for i := r.first; i <= r.last; i++ {
			tables[i] = append(tables[i], r)
		}
	}
	at := h.index(rel.Name)
	if at < 0 {
		at = max(len(h.releases)-1, 0)
		if rel.Name == "main" {
			at = len(h.releases)
		}
		h.releases = slices.Insert(slices.Clone(h.releases), at, rel)
		tables = slices.Insert(tables, at, nil)
	}
	h.releases[at] = rel
	tables[at] = flags
	h.rows = spans(tables)
	return h
}

// spans merges equal definitions of consecutive releases into one row. The newest
// release's flags come first, in the order of its parser.
func spans(tables [][]row) []row {
	var rows []row
	at := map[string]int{} // by flag name, the index of its oldest row so far
	for i, table := range slices.Backward(tables) {
		for _, r := range table {
			if k, ok := at[r.Name]; ok && rows[k].first == i+1 && same(rows[k], r) {
				rows[k].first = i
				continue
			}
			r.first, r.last = i, i
			at[r.Name] = len(rows)
			rows = append(rows, r)
		}
	}
	return rows
}

// same reports whether two definitions are equal apart from their releases and
// their group in the help.
func same(a, b row) bool {
	a.Since, a.Until, a.Group, a.first, a.last = b.Since, b.Until, b.Group, b.first, b.last
	return reflect.DeepEqual(a, b)
}

// normal returns a row of a parser's dump in one uniform form: a switch has no
// count of values, and the default store action is left out.
func normal(r row) row {
	if n, ok := r.Nargs.(float64); ok && n == 0 {
		r.Nargs = nil
	}
	if r.Action == "StoreAction" {
		r.Action = ""
	}
	if len(r.Aliases) == 0 {
		r.Aliases = nil
	}
	if len(r.Choices) == 0 {
		r.Choices = nil
	}
	if r.Type == "flag" && r.Default == nil {
		r.Default = false
	}
	if r.Type == "<lambda>" { // a function that converts a word into an enum member
		r.Type = "enum_type_handler"
		if r.Nargs != nil {
			r.Type = "_parse_cuda_graph_modules_arg"
		}
	}
	return r
}
