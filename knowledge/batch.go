package knowledge

import (
	"context"
	"encoding/json"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// A batchLine is one question of a batch.
type batchLine struct {
	ID   json.RawMessage `json:"id,omitempty"`
	Q    *string         `json:"q"`
	Lang string          `json:"lang,omitempty"`
}

// A lineAnswer is the answer to one line of a batch.
type lineAnswer struct {
	ID json.RawMessage `json:"id,omitempty"`
	*Answer
	Error *lineError `json:"error,omitempty"`
}

type lineError struct {
	Code    string `json:"code"`
	Field   string `json:"field,omitempty"`
	Message string `json:"message"`
}

// Batch answers one line of `ask --batch`. Both the line and the answer are JSON
// objects. The answer to a bad line has an error.
func (a *Answerer) Batch(ctx context.Context, in []byte) []byte {
	var q batchLine
	bad := func(field, msg string) []byte {
		return encode(lineAnswer{ID: q.ID, Error: &lineError{Code: "bad_input", Field: field, Message: msg}})
	}
	if err := json.Unmarshal(in, &q); err != nil {
		return bad("", "not a JSON object with q: "+err.Error())
	}
	if q.Q == nil {
		return bad("q", "q is missing: give the question as a string")
	}
	var l lang.Lang
	if q.Lang != "" {
		var ok bool
		if l, ok = lang.Parse(q.Lang); !ok {
			return bad("lang", "lang is "+q.Lang+": give en or zh")
		}
	}
	ans, err := a.Ask(ctx, Question{Text: *q.Q, Lang: l})
	if err != nil {
		return encode(lineAnswer{ID: q.ID, Error: &lineError{Code: "failed", Message: err.Error()}})
	}
	return encode(lineAnswer{ID: q.ID, Answer: &ans})
}

func encode(v lineAnswer) []byte {
	out, err := json.Marshal(v)
	if err != nil {
		return []byte(`{"error":{"code":"failed","message":"answer cannot be written as JSON"}}`)
	}
	return out
}
