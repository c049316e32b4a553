// Package secretfile reads files that contain a secret, which only their owner may be
// able to read.
package secretfile

import (
	"os"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// Read returns a file's content without surrounding white space. It refuses a file that
// its group or others can read, and a file that does not exist.
func Read(file string) (string, error) {
	info, err := os.Stat(file)
	if err != nil {
		return "", err
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return "", lang.Text{EN: "%s can be read by others (mode %o): chmod 600 %[1]s", ZH: "%s 可被他人读取（权限 %o）：chmod 600 %[1]s"}.Err(file, mode)
	}
	text, err := os.ReadFile(file)
	return strings.TrimSpace(string(text)), err
}
