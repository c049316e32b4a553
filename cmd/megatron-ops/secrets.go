package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
)

// secretNames are the variables that hold secrets.
var secretNames = []string{
	"SLACK_BOT_TOKEN", "SLACK_APP_TOKEN", "SLACK_SIGNING_SECRET", "SLACK_SIGNING_SECRET_OLD", "SLACK_CLIENT_SECRET", "MEGATRON_OPS_SLACK_KEY", "OPENAI_API_KEY",
}

// readSecrets sets the variables of secrets that are not set from files: the one
// that NAME_FILE names, else the credential of that name that systemd passes
// (LoadCredential=SLACK_BOT_TOKEN:…). A file that others may read is refused.
func readSecrets() error {
	credentials := os.Getenv("CREDENTIALS_DIRECTORY")
	for _, name := range secretNames {
		if os.Getenv(name) != "" {
			continue
		}
		file, named := os.Getenv(name+"_FILE"), true
		if file == "" && credentials != "" {
			file, named = filepath.Join(credentials, name), false
		}
		if file == "" {
			continue
		}
		info, err := os.Stat(file)
		if errors.Is(err, fs.ErrNotExist) && !named {
			continue
		}
		var b []byte
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			err = lang.Text{EN: "%s can be read by others: chmod 600 %[1]s", ZH: "%s 可被其他人读取：chmod 600 %[1]s"}.Err(file)
		}
		if err == nil {
			b, err = os.ReadFile(file)
		}
		if err != nil {
			return &ops.Error{
				Code: ops.BadInput, Field: name + "_FILE", Message: lang.Said(err),
				Fix: lang.Text{EN: "name a file with mode 600 that this account may read", ZH: "请指定本账号可读、权限 600 的文件"},
			}
		}
		if err := os.Setenv(name, strings.TrimSpace(string(b))); err != nil {
			return err
		}
	}
	return nil
}
