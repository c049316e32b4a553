package tree

import (
	"bytes"
	"encoding/json"
)

// JSON encodes v on one line, without the escapes that only HTML needs, so that its texts
// stay readable.
func JSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimRight(b.Bytes(), "\n"), err
}
