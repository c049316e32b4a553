package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSecretsComeFromFiles(t *testing.T) {
	dir := t.TempDir()
	for _, name := range secretNames {
		t.Setenv(name, "")
		t.Setenv(name+"_FILE", "")
	}
	write := func(name string, mode os.FileMode) string {
		t.Helper()
		file := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(file, []byte(name+"-value\n"), mode))
		return file
	}
	t.Setenv("CREDENTIALS_DIRECTORY", dir)
	write("SLACK_APP_TOKEN", 0o400)
	t.Setenv("SLACK_BOT_TOKEN_FILE", write("bot", 0o600))
	t.Setenv("OPENAI_API_KEY", "given")
	t.Setenv("OPENAI_API_KEY_FILE", write("unused", 0o600))
	undo, err := readSecrets()
	require.NoError(t, err)
	require.Equal(t, "bot-value", os.Getenv("SLACK_BOT_TOKEN"))
	require.Equal(t, "SLACK_APP_TOKEN-value", os.Getenv("SLACK_APP_TOKEN"), "systemd's credential")
	require.Equal(t, "given", os.Getenv("OPENAI_API_KEY"), "a variable wins")
	require.Empty(t, os.Getenv("SLACK_SIGNING_SECRET"))

	undo()
	require.Empty(t, os.Getenv("SLACK_BOT_TOKEN"))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "bot"), []byte("next\n"), 0o600))
	_, err = readSecrets()
	require.NoError(t, err)
	require.Equal(t, "next", os.Getenv("SLACK_BOT_TOKEN"), "a file is read again")

	t.Setenv("SLACK_SIGNING_SECRET_FILE", write("open", 0o644))
	_, err = readSecrets()
	require.ErrorContains(t, err, "can be read by others")
	t.Setenv("SLACK_SIGNING_SECRET_FILE", filepath.Join(dir, "none"))
	_, err = readSecrets()
	require.ErrorContains(t, err, "SLACK_SIGNING_SECRET_FILE")
}
