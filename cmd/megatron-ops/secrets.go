package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
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
		field := name + "_FILE"
		file := os.Getenv(field)
		if file == "" && credentials != "" {
			file = filepath.Join(credentials, name)
			if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
				continue
			}
		}
		if file == "" {
			continue
		}
		text, err := readPrivate(file, field)
		if err != nil {
			return err
		}
		if err := os.Setenv(name, text); err != nil {
			return err
		}
	}
	return nil
}
