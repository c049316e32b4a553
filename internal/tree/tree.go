// Package tree holds a YAML or JSON document as a tree of values, and reads a tree into
// a struct. What a mistake is called is left to whoever reads.
package tree

import "slices"

// A Kind is the type of a value.
type Kind int

// The kinds.
const (
	Null Kind = iota
	Text
	Int
	Real
	Bool
	List
	Map
)

// A Node is one value of a document. Scalars keep their text, so that "3e-4" and "010"
// reach a program unchanged.
type Node struct {
	Kind Kind
	Text string
	Line int // in the document, from 1
	// Blank is set for a null that is not written: the key has no value.
	Blank bool
	List  []Node
	Keys  []string // keys of a map, in order; List holds the values
}

// Key returns the value of a map's key, or nothing.
func (n Node) Key(key string) Node {
	if i := slices.Index(n.Keys, key); i >= 0 {
		return n.List[i]
	}
	return Node{}
}

// Texts returns the texts of a list, or of a single value as a list of one.
func (n Node) Texts() []string {
	if n.Kind != List {
		return []string{n.Text}
	}
	var out []string
	for _, e := range n.List {
		out = append(out, e.Text)
	}
	return out
}

// Join returns the path of a key of the map at path.
func Join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
