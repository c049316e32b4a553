package diagnose

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"reflect"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logfile"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
)

// A request is one input line of `diagnose --batch`.
type request struct {
	ID      json.RawMessage `json:"id"`
	Path    string          `json:"path"`
	Context Context         `json:"context"`
}

// A refusal is the output line for an input line that could not be diagnosed.
type refusal struct {
	ID    json.RawMessage `json:"id,omitempty"`
	Error problem         `json:"error"`
	// Unreadable lists every log that could not be read, with the reason.
	Unreadable []logfile.Unreadable `json:"unreadable,omitempty"`
}

type problem struct {
	Code    string `json:"code"`
	Field   string `json:"field"`
	Message string `json:"message"`
	Fix     string `json:"fix"`
}

// Batch diagnoses one input line of `diagnose --batch`. It returns a JSON object without a newline, for
// any input.
func Batch(ctx context.Context, line []byte) []byte {
	var q request
	if err := json.Unmarshal(bytes.TrimSpace(line), &q); err != nil {
		return answer(refusal{ID: idOf(line), Error: problem{
			"bad_input", "", "not a JSON object of the expected form: " + err.Error(),
			`write {"id":…,"path":"file or directory"}`,
		}})
	}
	if q.Path == "" {
		return answer(refusal{ID: q.ID, Error: problem{"bad_input", "path", "path is empty", "name a log file or a directory of logs"}})
	}
	if key := misplaced(line); key != "" {
		return answer(refusal{ID: q.ID, Error: problem{
			"bad_input", key, strconv.Quote(key) + ` has no effect beside "path"`, `write "context":{` + strconv.Quote(key) + `:…}`,
		}})
	}
	if given := q.Context.JobState; given != "" && given != "ENDED" {
		state, known := slurm.KnownState(given)
		if !known {
			return answer(refusal{ID: q.ID, Error: problem{
				"bad_input", "context.job_state", strconv.Quote(given) + " is no state of Slurm's", "a state such as RUNNING or FAILED, or ENDED",
			}})
		}
		q.Context.JobState = string(state)
	}
	r, err := Path(ctx, q.Path, q.Context)
	if err != nil {
		code := "failed"
		if errors.Is(err, fs.ErrNotExist) {
			code = "not_found"
		}
		no := refusal{ID: q.ID, Error: problem{code, "path", err.Error(), "name a log file or a directory of logs"}}
		if none := new(logfile.UnreadableError); errors.As(err, &none) {
			no.Unreadable = none.Logs
		}
		return answer(no)
	}
	return answer(struct {
		ID json.RawMessage `json:"id,omitempty"`
		report.Report
	}{q.ID, r})
}

// misplaced returns a key of the context that an input line has outside it, or "".
func misplaced(line []byte) string {
	var keys map[string]json.RawMessage
	_ = json.Unmarshal(line, &keys)
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Context]()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if _, ok := keys[name]; ok && name != "" && name != "-" {
			return name
		}
	}
	return ""
}

// idOf returns the id of an input line whose other fields may have wrong types.
func idOf(line []byte) json.RawMessage {
	var q struct {
		ID json.RawMessage `json:"id"`
	}
	_ = json.Unmarshal(line, &q)
	return q.ID
}

func answer(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil { // only a raw id can fail
		b = []byte(`{"error":{"code":"bad_input","field":"id","message":"id is not JSON","fix":""}}`)
	}
	return b
}
