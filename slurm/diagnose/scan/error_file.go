package scan

import (
	"encoding/json"
	"strings"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/python"
)

// ofErrorFile returns the exception in an error file that torchelastic logs as JSON over several lines:
// {"message": {"message": "ValueError: …", "extraInfo": …
// (torch/distributed/elastic/multiprocessing/errors/error_handler.py).
func ofErrorFile(previous, text string) (exception string, ok bool) {
	if strings.TrimSpace(previous) != `"message": {` {
		return "", false
	}
	value, ok := strings.CutPrefix(strings.TrimSpace(text), `"message": `)
	if !ok || json.Unmarshal([]byte(strings.TrimSuffix(value, ",")), &exception) != nil {
		return "", false
	}
	exception, _, _ = strings.Cut(exception, "\n")
	exception = strings.TrimSpace(exception)
	_, _, ok = python.ParseException(exception, false)
	return exception, ok
}
