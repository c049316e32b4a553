package munge

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

const head = "STATUS:          Success (0)\nENCODE_HOST:     login1 (10.0.0.1)\nUID:             alice (1001)\nGID:             staff (50)\n"

// The user who made a credential is read from the lines before the text, never from the
// text.
func TestWhoMadeACredential(t *testing.T) {
	for out, want := range map[string]struct {
		uid  int
		text string
	}{
		head + "LENGTH: 2\n\nhi":                           {1001, "hi"},
		head + "\nUID:             root (0)\n\nUID: x (0)": {1001, "UID:             root (0)\n\nUID: x (0)"},
		"UID:             a (0) (1002)\n\n":                {1002, ""},
		"UID:             ??? (4294967294)\n\nhi":          {4294967294, "hi"},
	} {
		uid, text, err := parseUnmunge(out)
		require.NoError(t, err, out)
		require.Equal(t, want.uid, uid, out)
		require.Equal(t, want.text, text, out)
	}
	for out, why := range map[string]string{
		head: "has no text",
		"STATUS:          Success (0)\n\nUID:             root (0)\n": "has no UID",
		"GUID:            root (0)\n\nhi":                             "has no UID",
		"UID:             root\n\nhi":                                 "has no UID",
		"UID:             root (99999999999999999999)\n\nhi":          "out of range",
		"": "has no text",
	} {
		_, _, err := parseUnmunge(out)
		require.ErrorContains(t, err, why, out)
	}
}

func TestWhyMungeRefuses(t *testing.T) {
	failed := errors.New("exit status 17")
	require.ErrorContains(t, callError("unmunge", "STATUS: Success\n", " no socket\n", failed), "no socket")
	require.EqualError(t, callError("unmunge", "ENCODE_HOST: a\nSTATUS:          Replayed credential (17)\n", "\n", failed), "unmunge: Replayed credential (17)")
	require.EqualError(t, callError("munge", "nothing", "", failed), "munge: exit status 17")
}

// fakePrograms writes a munge and an unmunge that are scripts, and returns their
// service.
func fakePrograms(t *testing.T, munge, unmunge string) Service {
	t.Helper()
	dir := t.TempDir()
	for name, script := range map[string]string{"munge": munge, "unmunge": unmunge} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700))
	}
	return Service{dirs: []string{t.TempDir(), dir}}
}

// The programs get the text and the socket, and nothing of this process's environment.
func TestWhatMungeIsGiven(t *testing.T) {
	t.Setenv("MUNGE_SECRET", "hush")
	s := fakePrograms(t, `echo "MUNGE:$(/bin/cat):$* $MUNGE_SECRET$LC_ALL"`, `printf 'STATUS: Success (0)\nUID: alice (1001)\n\n'; /bin/cat`)
	sealed, err := s.Seal(t.Context(), "hi")
	require.NoError(t, err)
	require.Equal(t, "MUNGE:hi: C", sealed)
	s.Socket = "/run/munge.sock"
	sealed, err = s.Seal(t.Context(), "hi")
	require.NoError(t, err)
	require.Equal(t, "MUNGE:hi:--socket=/run/munge.sock C", sealed)
	uid, text, err := s.Open(t.Context(), "MUNGE:x")
	require.NoError(t, err)
	require.Equal(t, 1001, uid)
	require.Equal(t, "MUNGE:x", text)
}

func TestAMungeThatFailsProvesNothing(t *testing.T) {
	s := fakePrograms(t, "echo MUNGE:x; exit 1", `printf 'STATUS: Expired credential (15)\nUID: alice (1001)\n\nhi'; exit 15`)
	uid, text, err := s.Open(t.Context(), "MUNGE:x")
	require.EqualError(t, err, "unmunge: Expired credential (15)")
	require.Zero(t, uid)
	require.Empty(t, text)
	sealed, err := s.Seal(t.Context(), "hi")
	require.Error(t, err)
	require.Empty(t, sealed)
	_, err = Service{dirs: []string{t.TempDir()}}.Seal(t.Context(), "hi")
	require.ErrorIs(t, err, errAbsent)
}
