package account

import (
	"context"
	"errors"
	"os/exec"
	"os/user"
	"testing"

	"github.com/stretchr/testify/require"
)

// A line of the passwd database is parsed exactly, or rejected.
func TestALineOfPasswd(t *testing.T) {
	for text, want := range map[string]User{
		"ada:x:1001:100:Ada:/home/ada:/bin/sh\n":       {"ada", 1001, 100},
		"ada:*:1001:100::/\nroot:x:0:0:root:/root:/\n": {"ada", 1001, 100},
		"":                                    {},
		"ada:x:1001:100:Ada":                  {},
		":x:0:0::/:/bin/sh":                   {},
		"ada:x::100:Ada:/home/ada:/bin/sh":    {},
		"ada:x:1001:y:Ada:/home/ada:/bin/sh":  {},
		"ada:x:0x0:100:Ada:/home/ada:/bin/sh": {},
	} {
		got, err := parsePasswd(text)
		require.Equal(t, want == User{}, err != nil, text)
		if err == nil {
			require.Equal(t, want, got, text)
		}
	}
}

// A line of the group database counts only for the requested group.
func TestALineOfGroup(t *testing.T) {
	for text, want := range map[string]string{
		"team:x:1002:ada,ben\n": "1002",
		"team:*:1002":           "1002",
		"crew:x:1002:ada\n":     "",
		"team:x":                "",
		"":                      "",
	} {
		got, ok := groupLine(text, "team")
		require.Equal(t, want, got, text)
		require.Equal(t, want != "", ok, text)
	}
}

// An answer of the name services counts only if it is about the requested user. No
// answer does not mean that the user is unknown.
func TestNameServicesAnswer(t *testing.T) {
	if _, err := ask(t.Context(), "getent", "passwd", "--", "root"); errors.Is(err, exec.ErrNotFound) {
		t.Skip("needs getent")
	}
	root, err := passwd(t.Context(), "root", func(u User) bool { return u.UID == 0 })
	require.NoError(t, err)
	require.Equal(t, "root", root.Name)
	_, err = passwd(t.Context(), "root", func(u User) bool { return u.UID == 1 })
	var unknown *UnknownError
	require.ErrorAs(t, err, &unknown)

	gone, stop := context.WithCancel(t.Context())
	stop()
	_, err = ByName(gone, "no-such-user-here")
	require.ErrorIs(t, err, context.Canceled)
	require.False(t, errors.As(err, &unknown), "not said to be unknown")
}

// An answer about another user is rejected.
func TestAnswersAboutSomebodyElseAreNotBelieved(t *testing.T) {
	ada := func(u User) bool { return u.Name == "ada" }
	got, err := fromFile(&user.User{Username: "ada", Uid: "1001", Gid: "100"}, ada)
	require.NoError(t, err)
	require.Equal(t, User{"ada", 1001, 100}, got)
	for _, other := range []user.User{{Username: "root", Uid: "0", Gid: "0"}, {Username: "ada", Uid: "S-1-5", Gid: "100"}, {Username: "ada", Uid: "1001", Gid: ""}} {
		_, err := fromFile(&other, ada)
		require.Error(t, err, other.Username)
	}
	in, err := Member(t.Context(), "root", "root")
	require.NoError(t, err)
	require.True(t, in)
	in, err = Member(t.Context(), "root", "daemon")
	require.NoError(t, err)
	require.False(t, in)
}
