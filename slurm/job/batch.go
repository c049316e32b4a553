package job

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// A batchAnswer is one line out of RenderBatch.
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
// {"id", "script"} or {"id", "error"} out, without a line end. It looks at the
// specification alone and always gives an answer.
func RenderLine(line []byte, o Options) []byte {
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
		var script Script
		script, err = renderText(in.Spec, o)
		answer.Script = script.Text
	}
	if err != nil {
		answer.Error = asBatchError(err)
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(answer); err != nil {
		return []byte(`{"id":null,"error":{"code":"bad_input","field":"id","message":"cannot be written back"}}`)
	}
	return bytes.TrimRight(out.Bytes(), "\n")
}

func renderText(text []byte, o Options) (Script, error) {
	s, err := Decode(text)
	if err != nil {
		return Script{}, err
	}
	return Render(s, o)
}

func asBatchError(err error) *batchError {
	out := &batchError{Code: "bad_input", Field: "spec", Message: err.Error()}
	if es := AsFieldErrors(err); len(es) > 0 {
		out.Field, out.Fix = es[0].Field, es[0].Fix.EN
	}
	return out
}

// RenderBatch answers every line of in, in order. It stops only where in cannot
// be read or out cannot be written.
func RenderBatch(in io.Reader, out io.Writer, o Options) error {
	r := bufio.NewReaderSize(in, 64<<10)
	for {
		line, err := r.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			if _, werr := out.Write(append(RenderLine(line, o), '\n')); werr != nil {
				return werr
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
