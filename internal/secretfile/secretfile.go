// Package secretfile reads files that hold a secret: nobody but their owner may
// read them.
package secretfile

import (
	"os"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// Read returns what a file holds, without the white space around it. A file that
// its group or others may read is refused, as is one that is not there.
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
