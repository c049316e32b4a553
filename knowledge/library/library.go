// Package library embeds the cards and their index in the program. go generate makes
// both from knowledge/cards/data.
package library

//go:generate go run ./build

import (
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/knowledge/cards"
	"github.com/megatron-ops/megatron-ops/knowledge/index"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
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

// BuiltIn returns the embedded library. Its cards have no Asks: only the index needs
// them.
var BuiltIn = sync.OnceValue(func() *Library {
	lib := &Library{}
	var err error
	if lib.Cards, err = decode(cardsBin); err == nil {
		lib.Index, err = index.Open(indexBin)
	}
	if err != nil {
		panic("library: embedded: " + err.Error()) // cannot happen: a test decodes both files
	}
	return lib
})

// Make indexes cards that are not built in: a site's pages or an operator's cards.
func Make(list []cards.Card) *Library {
	x, err := index.Open(index.Build(docs(list)))
	if err != nil {
		panic("library: " + err.Error()) // cannot happen: Open reads what Build writes
	}
	return &Library{Cards: list, Index: x}
}

// OffTopic reports whether a hit is an off-topic question and no card.
func (l *Library) OffTopic(h index.Hit) bool { return h.Doc >= len(l.Cards) }

// HasFieldTerm reports whether a question contains a term of the field.
func (l *Library) HasFieldTerm(question string) bool {
	return l.Index.HasFieldTerm(question, len(l.Cards))
}

// ForeignShare returns the share of a question's words that off-topic questions have and no
// card has.
func (l *Library) ForeignShare(question string) float64 {
	return l.Index.ForeignShare(question, len(l.Cards))
}

// UnknownShare returns the share of a question's words that no card contains.
func (l *Library) UnknownShare(question string) float64 {
	return l.Index.UnknownShare(question, len(l.Cards))
}

// Holds reports whether a card contains an option or a variable, given in lower case.
func (l *Library) Holds(name string) bool { return l.Index.Holds(name, len(l.Cards)) }

// Find returns the card with the id.
func (l *Library) Find(id string) (cards.Card, bool) {
	i := slices.IndexFunc(l.Cards, func(c cards.Card) bool { return c.ID == id })
	if i < 0 {
		return cards.Card{}, false
	}
	return l.Cards[i], true
}

// offTopicFile lists questions about other subjects, one a line. They follow the cards
// in the index. A question that is nearest to one of them is off topic.
const offTopicFile = "off-topic.txt"

// all returns the cards of the folder and the cards of Megatron's messages.
func all(data fs.FS) ([]cards.Card, error) {
	list, err := cards.Load(data)
	if err != nil {
		return nil, err
	}
	for i := range list {
		addDefault(&list[i])
	}
	more, err := messages(data)
	return append(list, more...), err
}

// flagTable is the kind of the rows that explain Megatron's flags.
const flagTable = "flag"

// addDefault adds the default that Megatron's parser has to the row of a flag that takes a
// value, and that of older releases where it was another, unless the row's text says one.
func addDefault(c *cards.Card) {
	f, ok := megatron.LookupFlag(c.Title.EN)
	if c.Table != flagTable || !ok || f.Action != megatron.Store || f.Type == megatron.Switch || f.Default == "" {
		return
	}
	if strings.Contains(c.Text.EN, "default") || strings.Contains(c.Text.ZH, "默认") {
		return
	}
	d := Default(f)
	c.Text.EN += "; default " + d.EN
	c.Text.ZH += ";默认 " + d.ZH
}

// Default returns a flag's default, with that of older releases where it was another.
func Default(f megatron.Flag) lang.Text {
	if f.Default == "" {
		return lang.Text{EN: "none", ZH: "无"}
	}
	if older, until, ok := megatron.OlderDefault(f.Name); ok {
		return lang.Text{EN: "%[1]s (%[2]s up to %[3]s)", ZH: "%[1]s(%[3]s 及以前为 %[2]s)"}.With(f.Default, older, until)
	}
	return lang.Same(f.Default)
}

// Build makes the two embedded files from the folder of cards.
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
		all[i] = index.Doc{Asks: c.Asks, Title: c.Title.EN + " " + c.Title.ZH, Body: c.Text.EN + " " + c.Text.ZH, Group: c.Table}
	}
	return all
}

// fields returns the fields of a card that encode writes.
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

// decode reads the result of encode. The cards' texts share the memory of s.
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
