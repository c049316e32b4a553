package lint

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

type request struct {
	ID   json.RawMessage `json:"id"`
	Path string          `json:"path"`
}

type answer struct {
	ID       json.RawMessage `json:"id"`
	Findings *[]Finding      `json:"findings,omitempty"`
	Error    *fault          `json:"error,omitempty"`
}

type fault struct {
	Code    string `json:"code"`
	Field   string `json:"field,omitempty"`
	Message string `json:"message"`
}

// Batch answers one line of `lint --batch`: {"id","path"} in, {"id","findings"} or
// {"id","error"} out. A relative path starts at the working directory.
func Batch(line []byte) []byte {
	var q request
	bad := json.Unmarshal(line, &q) // Unmarshal sets the id even if another field is wrong
	a := answer{ID: q.ID}
	switch {
	case bad != nil:
		a.Error = &fault{Code: "bad_input", Message: "not a JSON object with id and path: " + bad.Error()}
	case q.Path == "":
		a.Error = &fault{"bad_input", "path", "path is missing: name the script to read"}
	default:
		src, err := readFile(q.Path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			a.Error = &fault{"not_found", "path", err.Error()}
		case err != nil:
			a.Error = &fault{"bad_input", "path", err.Error()}
		default:
			a.Findings = new(append([]Finding{}, Check(q.Path, src)...))
		}
	}
	out, _ := json.Marshal(a) // cannot fail for these types
	return out
}

// maxScript is the largest file that Batch reads, in bytes. No batch script is larger.
const maxScript = 4 << 20

func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: path, Err: lang.Text{EN: "not a regular file", ZH: "不是普通文件"}.Err()}
	}
	if info.Size() > maxScript {
		return nil, &fs.PathError{Op: "read", Path: path, Err: lang.Text{EN: "larger than any batch script (4 MiB)", ZH: "超过批处理脚本的上限（4 MiB）"}.Err()}
	}
	src, err := os.ReadFile(path)
	switch {
	case err != nil:
		return nil, err
	case bytes.IndexByte(src, 0) >= 0:
		return nil, &fs.PathError{Op: "read", Path: path, Err: ErrNoText}
	case IsSpec(path, src):
		return nil, &fs.PathError{Op: "read", Path: path, Err: lang.Text{EN: "a job specification, which plan judges", ZH: "是作业规格，请用 plan 检查"}.Err()}
	}
	return src, nil
}

// ErrNoText says that a file with NUL bytes is no batch script.
var ErrNoText = lang.Text{EN: "it contains NUL bytes, with which sbatch refuses a script", ZH: "其中有 NUL 字节，sbatch 会拒绝这样的脚本"}.Err()

// IsSpec reports whether a file is a job specification. Nothing would be found wrong with
// one, because to a shell its lines are just unknown commands.
func IsSpec(name string, text []byte) bool {
	if slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(name)) {
		return true
	}
	s, err := job.Decode(text)
	return err == nil && !reflect.ValueOf(s).IsZero() && !bytes.HasPrefix(text, []byte("#!"))
}
