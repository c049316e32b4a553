// Package eval scores answers to the questions that go with the skills: one JSON
// object a line, with the question, what a right answer must hold, or that it
// must be declined. They lie here and not in the skills' folders, which are
// installed on people's machines as they are.
package eval

import (
	"bufio"
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/knowledge"
)

// Questions holds the questions of each skill: questions/SKILL.jsonl.
//
//go:embed questions
var Questions embed.FS

// A Question is one line of a skill's questions.
type Question struct {
	ID   string    `json:"id"`
	Lang lang.Lang `json:"lang"`
	// Kind is fact, script, compute, trap, troubleshoot or refuse.
	Kind string `json:"kind"`
	Q    string `json:"q"`
	// Must lists groups; an answer holds at least one text of every group,
	// whatever the case.
	Must [][]string `json:"must,omitempty"`
	// Refuse says that the question has to be declined.
	Refuse bool `json:"refuse,omitempty"`
}

// Load reads the questions of every skill of fsys, by the skill's name.
func Load(fsys fs.FS) (map[string][]Question, error) {
	files, err := fs.Glob(fsys, "questions/*.jsonl")
	if err != nil {
		return nil, err
	}
	out := make(map[string][]Question, len(files))
	for _, name := range files {
		text, err := fs.ReadFile(fsys, name)
		if err != nil {
			return nil, err
		}
		skill := strings.TrimSuffix(path.Base(name), ".jsonl")
		lines := bufio.NewScanner(bytes.NewReader(text))
		for n := 1; lines.Scan(); n++ {
			var q Question
			if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
				return nil, fmt.Errorf("%s:%d: %w", name, n, err)
			}
			out[skill] = append(out[skill], q)
		}
		if err := lines.Err(); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return out, nil
}

// An Asker answers questions: the built-in answerer, or one with a model.
type Asker interface {
	Ask(ctx context.Context, q knowledge.Question) (knowledge.Answer, error)
}

// Alone is a model without the skills: what it answers by itself.
type Alone struct{ Model *knowledge.Model }

// Ask has the model answer by itself.
func (a Alone) Ask(ctx context.Context, q knowledge.Question) (knowledge.Answer, error) {
	text, err := a.Model.Alone(ctx, q.Text)
	if err != nil {
		// A model that fails has answered wrong; the others are asked all the same.
		return knowledge.Answer{Refused: true}, ctx.Err()
	}
	return knowledge.Answer{Answer: text, Refused: knowledge.Excuse(text)}, nil
}

// A Score counts right answers, in all and by kind and language.
type Score struct {
	Passed int                `json:"passed"`
	Total  int                `json:"total"`
	By     map[string]*Counts `json:"by"`
	Failed []Failure          `json:"failed"`
}

// Counts are right answers out of so many.
type Counts struct {
	Passed int `json:"passed"`
	Total  int `json:"total"`
}

// A Failure is a wrong answer and what is wrong with it.
type Failure struct {
	ID  string `json:"id"`
	Q   string `json:"q"`
	Why string `json:"why"`
}

// Share is the share of right answers.
func (s Score) Share() float64 { return float64(s.Passed) / float64(max(s.Total, 1)) }

// Run asks every question and scores the answers.
func Run(ctx context.Context, a Asker, questions []Question) (Score, error) {
	s := Score{By: map[string]*Counts{}, Failed: []Failure{}}
	for _, q := range questions {
		ans, err := a.Ask(ctx, knowledge.Question{Text: q.Q, Lang: q.Lang})
		if err != nil {
			return s, fmt.Errorf("question %s: %w", q.ID, err)
		}
		why := Judge(q, ans)
		s.Total++
		for _, key := range []string{q.Kind, string(q.Lang)} {
			if s.By[key] == nil {
				s.By[key] = &Counts{}
			}
			s.By[key].Total++
			if why == "" {
				s.By[key].Passed++
			}
		}
		if why == "" {
			s.Passed++
		} else {
			s.Failed = append(s.Failed, Failure{q.ID, q.Q, why})
		}
	}
	return s, nil
}

// Judge says what is wrong with an answer; empty where nothing is.
func Judge(q Question, a knowledge.Answer) string {
	switch {
	case q.Refuse && !a.Refused:
		return "answered, has to be declined"
	case q.Refuse:
		return ""
	case a.Refused:
		return "declined"
	}
	text := strings.ToLower(strings.ReplaceAll(a.Answer, "`", ""))
	for _, group := range q.Must {
		if !holdsOne(text, group) {
			return "missing " + strings.Join(group, " or ")
		}
	}
	if han := lang.Of(a.Answer) == lang.ZH; q.Lang == lang.ZH && !han {
		return "not in Chinese"
	}
	return ""
}

func holdsOne(text string, group []string) bool {
	for _, g := range group {
		if strings.Contains(text, strings.ToLower(g)) {
			return true
		}
	}
	return false
}
