package account

import (
	"os/user"
	"testing"

	"github.com/stretchr/testify/require"
)

// A line of the passwd database is read as it is written, or not at all.
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
		got, err := line(text)
		require.Equal(t, want == User{}, err != nil, text)
		if err == nil {
			require.Equal(t, want, got, text)
		}
	}
}

// A name service that answers with somebody else is not believed.
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
