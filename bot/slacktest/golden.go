package slacktest

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// SameView compares a drawn view with its golden file, or with update writes the file.
func SameView(t testing.TB, file string, drawn []byte, update bool) {
	t.Helper()
	var x any
	require.NoError(t, json.Unmarshal(drawn, &x))
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	require.NoError(t, e.Encode(x))
	if update {
		require.NoError(t, os.WriteFile(file, b.Bytes(), 0o644))
		return
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), b.String(), "%s: -update writes it", file)
}
