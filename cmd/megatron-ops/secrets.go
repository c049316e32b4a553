package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

var secretNames = []string{
	"SLACK_BOT_TOKEN", "SLACK_APP_TOKEN", "SLACK_SIGNING_SECRET", "SLACK_SIGNING_SECRET_OLD", "SLACK_CLIENT_SECRET", "MEGATRON_OPS_SLACK_KEY", "OPENAI_API_KEY",
}

var secretsFromFiles = map[string]bool{}

// readSecrets sets variables of secrets from files: from the file that NAME_FILE names,
// else from the credential of that name that systemd passes
// (LoadCredential=SLACK_BOT_TOKEN:…). A variable that was set otherwise is left alone.
// A file that others may read is refused. A second call reads the files again; undo
// restores the values before.
func readSecrets() (undo func(), err error) {
	credentials := os.Getenv("CREDENTIALS_DIRECTORY")
	read := map[string]string{}
	for _, name := range secretNames {
		if os.Getenv(name) != "" && !secretsFromFiles[name] {
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
		text, err := readSecretFile(file, field)
		if err != nil {
			return nil, err
		}
		read[name] = text
	}
	before := map[string]string{}
	for name, text := range read {
		before[name], secretsFromFiles[name] = os.Getenv(name), true
		if err := os.Setenv(name, text); err != nil {
			return nil, err
		}
	}
	return func() {
		for name, text := range before {
			_ = os.Setenv(name, text) // cannot fail: the value was set before
		}
	}, nil
}
