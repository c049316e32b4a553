package job

import (
	"encoding/json"

	"github.com/megatron-ops/megatron-ops/internal/tree"
)

// A batchAnswer is the JSON answer to one line of `render --batch`.
type batchAnswer struct {
	ID     json.RawMessage `json:"id"`
	Script string          `json:"script,omitempty"`
	Error  *batchError     `json:"error,omitempty"`
}

type batchError struct {
	Code    string `json:"code"`
	Field   string `json:"field"`
	Message string `json:"message"`
	Fix     string `json:"fix,omitempty"`
}

// RenderLine answers one line of `render --batch`: {"id", "spec"} in,
// {"id", "script"} or {"id", "error"} out, without a line end. It checks only the
// specification itself, and returns an answer whatever the input is.
func RenderLine(line []byte) []byte {
	var in struct {
		ID   json.RawMessage `json:"id"`
		Spec json.RawMessage `json:"spec"`
	}
	answer := batchAnswer{ID: json.RawMessage("null")}
	err := json.Unmarshal(line, &in)
	if len(in.ID) > 0 {
		answer.ID = in.ID
	}
	switch {
	case err != nil:
		err = notSpec(phrase("not a JSON line: %s", "不是 JSON 行：%s", err.Error()), phrase(`write {"id": …, "spec": {…}}`, `请写 {"id": …, "spec": {…}}`))
	case in.Spec == nil:
		err = notSpec(phrase("is missing", "缺失"), phrase(`write {"id": …, "spec": {…}}`, `请写 {"id": …, "spec": {…}}`))
	default:
		var s Spec
		var script Script
		if s, err = Decode(in.Spec); err == nil {
			script, err = Render(s, Options{})
		}
		answer.Script = script.Text
	}
	if err != nil {
		answer.Error = &batchError{Code: "bad_input", Field: "spec", Message: err.Error()}
		if es := AsFieldErrors(err); len(es) > 0 {
			answer.Error.Field, answer.Error.Fix = es[0].Field, es[0].Fix.EN
		}
	}
	out, err := tree.JSON(answer)
	if err != nil {
		return []byte(`{"id":null,"error":{"code":"bad_input","field":"id","message":"cannot be written back"}}`)
	}
	return out
}
