package rules

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/tree"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
)

// A lineError says why a line could not be judged.
type lineError struct {
	Code    string `json:"code"`
	Field   string `json:"field"`
	Message string `json:"message"`
}

type lineIn struct {
	ID        json.RawMessage `json:"id"`
	Entry     json.RawMessage `json:"entry"`
	Argv      json.RawMessage `json:"argv"`
	WorldSize json.RawMessage `json:"world_size"`
	Arch      json.RawMessage `json:"arch"`
	Env       json.RawMessage `json:"env"`
	Megatron  json.RawMessage `json:"megatron"`
}

type lineOut struct {
	ID       json.RawMessage `json:"id"`
	OK       bool            `json:"ok"`
	Problems []Problem       `json:"problems"`
	// Notes are Megatron's silent changes. They are no problems.
	Notes   []Problem      `json:"notes,omitempty"`
	Derived map[string]any `json:"derived"`
}

type lineFault struct {
	ID    json.RawMessage `json:"id"`
	Error lineError       `json:"error"`
}

// Batch judges one line of a batch, a JSON object with argv and world_size, and
// optionally id, entry, arch, env and megatron. It returns one line of JSON without
// the line's end. For a line that it cannot read, that JSON is an error.
func Batch(line []byte) []byte {
	var in lineIn
	if err := json.Unmarshal(line, &in); err != nil {
		return fault(nil, "", "the line is not a JSON object: "+err.Error())
	}
	if bytes.TrimSpace(line)[0] != '{' {
		return fault(nil, "", "the line is not a JSON object")
	}
	run := megatron.Run{Arch: 9}
	version := "main"
	for _, f := range []struct {
		name     string
		raw      json.RawMessage
		into     any
		required bool
		want     string
	}{
		{"entry", in.Entry, &run.Entry, false, "a word such as gpt, hybrid, t5 or bert"},
		{"argv", in.Argv, &run.Argv, true, "a list of strings"},
		{"world_size", in.WorldSize, &run.WorldSize, true, "a whole number of at least 1"},
		{"arch", in.Arch, &run.Arch, false, "the compute capability's major number, such as 8, 9 or 10"},
		{"env", in.Env, &run.Env, false, "an object of strings"},
		{"megatron", in.Megatron, &version, false, "a release of Megatron-LM such as 0.17.1, or main"},
	} {
		if f.raw == nil || string(f.raw) == "null" {
			if f.required {
				return fault(in.ID, f.name, f.name+" is missing: give "+f.want)
			}
			continue
		}
		if err := json.Unmarshal(f.raw, f.into); err != nil {
			return fault(in.ID, f.name, fmt.Sprintf("%s is %s: give %s", f.name, clip(string(f.raw)), f.want))
		}
	}
	match, known := megatron.ParseRelease(version)
	run.Release = match.Release
	switch {
	case !known:
		return fault(in.ID, "megatron", fmt.Sprintf("megatron is %q: give a release that is known (%s), a range such as >=0.16,<0.18, or a release's commit", clip(version), releaseNames()))
	case run.WorldSize < 1:
		return fault(in.ID, "world_size", fmt.Sprintf("world_size is %d: give a whole number of at least 1", run.WorldSize))
	case run.Arch < 7:
		return fault(in.ID, "arch", fmt.Sprintf("arch is %d: give 7 or more, such as 8, 9 or 10", run.Arch))
	}
	v := CheckIn(run, lang.EN)
	out := lineOut{ID: in.ID, OK: v.OK, Problems: []Problem{}, Derived: v.Derived}
	for _, p := range v.Problems {
		if p.Severity == Note {
			out.Notes = append(out.Notes, p)
			continue
		}
		out.Problems = append(out.Problems, p)
	}
	return encode(out)
}

// releaseNames lists the known releases, oldest first.
func releaseNames() string {
	var names []string
	for _, r := range megatron.Releases() {
		names = append(names, r.String())
	}
	return strings.Join(names, ", ")
}

func fault(id json.RawMessage, field, message string) []byte {
	return encode(lineFault{ID: id, Error: lineError{Code: "bad_input", Field: field, Message: message}})
}

// encode returns v as one line of JSON, with <, > and & unescaped.
func encode(v any) []byte {
	line, err := tree.JSON(v)
	if err != nil {
		return []byte(`{"id":null,"error":{"code":"failed","field":"","message":"the answer cannot be written as JSON"}}`)
	}
	return line
}
