// Package eval scores answers to the skills' test questions. The questions are not in the
// skills' folders, because these are installed on people's machines as they are.
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
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/knowledge"
)

// Questions holds the questions of each skill, one JSON object a line, in
// questions/SKILL.jsonl.
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
	// Must lists groups of texts. A right answer contains at least one text of every
	// group; case does not matter.
	Must [][]string `json:"must,omitempty"`
	// Refuse reports that the question must be declined.
	Refuse bool `json:"refuse,omitempty"`
}

// Load reads the questions of every skill in fsys. The result is keyed by skill.
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

// An Asker answers questions, with or without a model.
type Asker interface {
	Ask(ctx context.Context, q knowledge.Question) (knowledge.Answer, error)
}

// Alone is an Asker that uses a model without passages and tools.
type Alone struct{ Model *knowledge.Model }

// Ask returns the model's own answer.
func (a Alone) Ask(ctx context.Context, q knowledge.Question) (knowledge.Answer, error) {
	text, err := a.Model.Alone(ctx, q.Text)
	if err != nil {
		// A failure of the model counts as a wrong answer and does not stop the run.
		return knowledge.Answer{Refused: true}, ctx.Err()
	}
	return knowledge.Answer{Answer: text, Refused: knowledge.Excuse(text)}, nil
}

// A Score counts right answers: all, by kind and by language.
type Score struct {
	Passed int                `json:"passed"`
	Total  int                `json:"total"`
	By     map[string]*Counts `json:"by"`
	Failed []Failure          `json:"failed"`
}

// Counts holds the number of right answers and of all answers.
type Counts struct {
	Passed int `json:"passed"`
	Total  int `json:"total"`
}

// A Failure is a question with a wrong answer, and the reason why it is wrong.
type Failure struct {
	ID  string `json:"id"`
	Q   string `json:"q"`
	Why string `json:"why"`
}

// Share returns the share of right answers.
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

// Judge says what is wrong with an answer. It returns "" for a right answer.
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
		if !slices.ContainsFunc(group, func(g string) bool { return strings.Contains(text, strings.ToLower(g)) }) {
			return "missing " + strings.Join(group, " or ")
		}
	}
	if q.Lang == lang.ZH && lang.Of(a.Answer) != lang.ZH {
		return "not in Chinese"
	}
	return ""
}
