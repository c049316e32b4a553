// Package cards holds what the product knows as short cards: one fact or
// procedure each, in English and Chinese, with example questions that lead to
// it and the page that states it. Cards are data under data/; a newcomer adds
// knowledge by adding a card.
package cards

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

//go:embed data
var data embed.FS

// A Card answers one question.
type Card struct {
	// ID is stable and readable, such as "slurm.begin".
	ID string
	// Title names the card where it is offered as a topic.
	Title lang.Text
	// Skill is the folder under skills/ that tells the whole story.
	Skill string
	// URL is the official page that states the fact; it may be empty.
	URL string
	// Asks are example questions in both languages.
	Asks []string
	// Denies are questions that take something wrong for granted, which the text
	// puts right.
	Denies []string
	Text   lang.Text
}

// All returns every card, read on first use.
func All() []Card {
	list, err := all()
	if err != nil {
		// The embedded files are checked by this package's tests.
		panic("cards: embedded: " + err.Error())
	}
	return list
}

var all = sync.OnceValues(func() ([]Card, error) { return Load(data) })

// Load reads the cards (*.md), the tables of terms (*.tsv) and the further
// questions (*.txt) of fsys.
func Load(fsys fs.FS) ([]Card, error) {
	var list []Card
	asks := map[string][]string{}
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		var more []Card
		switch path.Ext(name) {
		case ".md":
			more, err = parse(string(text))
		case ".tsv":
			more, err = parseTerms(string(text))
		case ".txt":
			err = parseAsks(string(text), asks)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		list = append(list, more...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i := range list {
		list[i].Asks = append(list[i].Asks, asks[list[i].ID]...)
		list[i].Denies = asks[list[i].ID+"!"]
		delete(asks, list[i].ID)
		delete(asks, list[i].ID+"!")
	}
	for id := range asks {
		return nil, fmt.Errorf("questions are listed for %s, which is no card", id)
	}
	return list, nil
}

// parseAsks reads further questions into asks: a line is "id: question | question".
// Behind "id!:" they are such that the card denies.
func parseAsks(text string, asks map[string][]string) error {
	for i, line := range strings.Split(text, "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		id, list, ok := strings.Cut(line, ": ")
		if !ok {
			return fmt.Errorf("line %d: want id: question | question", i+1)
		}
		asks[id] = append(asks[id], strings.Split(list, " | ")...)
	}
	return nil
}

// parse reads a file of cards:
//
//	skill: slurm-user-guide
//	url: https://…            (of the cards below that name none)
//
//	## slurm.begin | Start a job later | 推迟启动作业
//	ask: an example question | another one
//	ask: 中文问法
//	url: https://…
//	en: the answer,
//	over several lines
//	zh: 答案
func parse(text string) ([]Card, error) {
	var (
		list       []Card
		skill, url string
		c          *Card
		into       *string // the text that a plain line continues
	)
	for i, line := range strings.Split(text, "\n") {
		if head, ok := strings.CutPrefix(line, "## "); ok {
			part := strings.Split(head, " | ")
			if len(part) != 3 {
				return nil, fmt.Errorf("line %d: a card begins with: ## id | title | 标题", i+1)
			}
			list = append(list, Card{ID: part[0], Title: lang.Text{EN: part[1], ZH: part[2]}, Skill: skill, URL: url})
			c, into = &list[len(list)-1], nil
			continue
		}
		key, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch {
		case c == nil && key == "skill":
			skill = value
		case key == "skill":
			c.Skill = value
		case c == nil && key == "url":
			url = value
		case c == nil:
			if strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "#") {
				return nil, fmt.Errorf("line %d: %q stands before the first card", i+1, line)
			}
		case key == "url" && into == nil:
			c.URL = value
		case key == "ask" && into == nil:
			for ask := range strings.SplitSeq(value, " | ") {
				c.Asks = append(c.Asks, strings.TrimSpace(ask))
			}
		case key == "en" && c.Text.EN == "":
			into = &c.Text.EN
			*into = value
		case key == "zh" && c.Text.ZH == "":
			into = &c.Text.ZH
			*into = value
		case into != nil:
			*into += "\n" + line
		case strings.TrimSpace(line) != "":
			return nil, fmt.Errorf("line %d: %q belongs to no field of card %s", i+1, line, c.ID)
		}
	}
	for i := range list {
		c := &list[i]
		c.Text.EN, c.Text.ZH = strings.TrimSpace(c.Text.EN), strings.TrimSpace(c.Text.ZH)
		if c.Text.EN == "" || c.Text.ZH == "" || len(c.Asks) == 0 {
			return nil, fmt.Errorf("card %s: asks, en and zh must all be there", c.ID)
		}
	}
	return list, nil
}

// parseTerms reads a table of terms, one card a row. A line "#: key = value"
// sets what the rows below share: kind, skill, url, and the asks, in which {}
// stands for the term. A row is: term, English, Chinese, and more asks if any,
// between tabs.
func parseTerms(text string) ([]Card, error) {
	var list []Card
	set := map[string]string{}
	for i, line := range strings.Split(text, "\n") {
		if kv, ok := strings.CutPrefix(line, "#: "); ok {
			key, value, _ := strings.Cut(kv, " = ")
			set[key] = value
			continue
		}
		if line == "" || line[0] == '#' {
			continue
		}
		col := strings.Split(line, "\t")
		if len(col) < 3 {
			return nil, fmt.Errorf("line %d: %d columns, want term, English, Chinese", i+1, len(col))
		}
		term := col[0]
		c := Card{
			ID:    set["kind"] + "." + term,
			Title: lang.Text{EN: term, ZH: term},
			Skill: set["skill"], URL: set["url"],
			Text: lang.Text{EN: "`" + term + "`: " + col[1], ZH: "`" + term + "`:" + col[2]},
		}
		for ask := range strings.SplitSeq(set["asks"], " | ") {
			c.Asks = append(c.Asks, strings.ReplaceAll(ask, "{}", term))
		}
		if len(col) > 3 {
			for ask := range strings.SplitSeq(col[3], " | ") {
				if ask != "" {
					c.Asks = append(c.Asks, ask)
				}
			}
		}
		list = append(list, c)
	}
	return list, nil
}
