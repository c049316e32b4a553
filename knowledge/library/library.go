// Package library carries the cards and their index in the program: both are
// made from knowledge/cards/data by go generate, and lie there ready to use.
package library

//go:generate go run ./build

import (
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"

	"github.com/megatron-ops/megatron-ops/knowledge/cards"
	"github.com/megatron-ops/megatron-ops/knowledge/index"
)

// A Library is a list of cards and the index that finds them.
type Library struct {
	Cards []cards.Card
	Index *index.Index
}

//go:embed cards.bin
var cardsBin string

//go:embed index.bin
var indexBin []byte

// BuiltIn is what the program carries. Its cards are without their ways of
// asking, which only the index needs.
var BuiltIn = sync.OnceValue(func() *Library {
	lib := &Library{}
	var err error
	if lib.Cards, err = decode(cardsBin); err == nil {
		lib.Index, err = index.Open(indexBin)
	}
	if err != nil {
		panic("library: embedded: " + err.Error()) // a test reads them
	}
	return lib
})

// Make indexes cards that are not built in: a site's pages, an operator's.
func Make(list []cards.Card) *Library {
	x, err := index.Open(index.Build(docs(list)))
	if err != nil {
		panic("library: " + err.Error()) // Open reads what Build writes
	}
	return &Library{Cards: list, Index: x}
}

// OffTopic reports whether a hit is no card but a question about something else,
// with which the library can only say that it has nothing.
func (l *Library) OffTopic(h index.Hit) bool { return h.Doc >= len(l.Cards) }

// Field reports whether a question holds a word of the field.
func (l *Library) Field(question string) bool { return l.Index.Field(question, len(l.Cards)) }

// Strange is how much of a question are words that no card holds.
func (l *Library) Strange(question string) float64 { return l.Index.Strange(question, len(l.Cards)) }

// Holds reports whether a card holds an option or a variable, in lower case.
func (l *Library) Holds(name string) bool { return l.Index.Holds(name, len(l.Cards)) }

// Find returns the card of an id.
func (l *Library) Find(id string) (cards.Card, bool) {
	for _, c := range l.Cards {
		if c.ID == id {
			return c, true
		}
	}
	return cards.Card{}, false
}

// offTopicFile lists questions about other things, one a line. They stand in the
// index behind the cards, as neighbours that a question may be nearest to.
const offTopicFile = "off-topic.txt"

// all are the cards of the folder, and those of Megatron's messages.
func all(data fs.FS) ([]cards.Card, error) {
	list, err := cards.Load(data)
	if err != nil {
		return nil, err
	}
	more, err := messages(data)
	return append(list, more...), err
}

// Build makes the two embedded files from the folder of the cards.
func Build(data fs.FS) (cardsFile, indexFile []byte, err error) {
	list, err := all(data)
	if err != nil {
		return nil, nil, err
	}
	text, err := fs.ReadFile(data, offTopicFile)
	if err != nil {
		return nil, nil, err
	}
	entries := docs(list)
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			entries = append(entries, index.Doc{Asks: []string{line}})
		}
	}
	return encode(list), index.Build(entries), nil
}

func docs(list []cards.Card) []index.Doc {
	all := make([]index.Doc, len(list))
	for i, c := range list {
		all[i] = index.Doc{Asks: c.Asks, Title: c.Title.EN + " " + c.Title.ZH, Body: c.Text.EN + " " + c.Text.ZH}
	}
	return all
}

// fields are what is kept of a card.
func fields(c *cards.Card) []*string {
	return []*string{&c.ID, &c.Title.EN, &c.Title.ZH, &c.Skill, &c.URL, &c.Text.EN, &c.Text.ZH}
}

func encode(list []cards.Card) []byte {
	b := binary.AppendUvarint(nil, uint64(len(list)))
	for i := range list {
		for _, f := range fields(&list[i]) {
			b = binary.AppendUvarint(b, uint64(len(*f)))
			b = append(b, *f...)
		}
	}
	return b
}

var errFormat = errors.New("not a file of cards of this release")

// decode reads what encode wrote. The cards' texts share its memory.
func decode(s string) ([]cards.Card, error) {
	number := func() (int, error) {
		n, k := binary.Uvarint([]byte(s[:min(len(s), binary.MaxVarintLen64)]))
		if k <= 0 || n > uint64(len(s)) {
			return 0, errFormat
		}
		s = s[k:]
		return int(n), nil
	}
	count, err := number()
	if err != nil {
		return nil, err
	}
	list := make([]cards.Card, count)
	for i := range list {
		for _, f := range fields(&list[i]) {
			n, err := number()
			if err != nil || n > len(s) {
				return nil, fmt.Errorf("card %d: %w", i, errFormat)
			}
			*f, s = s[:n], s[n:]
		}
	}
	return list, nil
}
