package account_test

import (
	"errors"
	"os"
	"testing"

	"github.com/megatron-ops/megatron-ops/internal/account"
	"github.com/megatron-ops/megatron-ops/internal/account/accounttest"
	"github.com/stretchr/testify/require"
)

func TestUsersOfThisMachine(t *testing.T) {
	root, err := account.ByName(t.Context(), "root")
	require.NoError(t, err)
	require.Equal(t, 0, root.UID)
	again, err := account.ByID(t.Context(), 0)
	require.NoError(t, err)
	require.Equal(t, root, again)
}

func TestWhoIsNotKnownIsAnError(t *testing.T) {
	for _, name := range []string{"", "no-such-user-here", "0", "-x", "root:x", "ro ot", "root\n", "root\x00", "../etc"} {
		_, err := account.ByName(t.Context(), name)
		var unknown *account.UnknownError
		require.Truef(t, errors.As(err, &unknown), "%q: %v", name, err)
	}
	_, err := account.ByID(t.Context(), 3_999_999)
	require.Error(t, err)
	for _, pair := range [][2]string{{"root", "no-such-group-here"}, {"no-such-user-here", "root"}, {"0", "root"}, {"root", "0"}} {
		in, err := account.Member(t.Context(), pair[0], pair[1])
		var unknown *account.UnknownError
		require.Truef(t, errors.As(err, &unknown), "%q: %v", pair, err)
		require.False(t, in, pair)
	}
}

// Setting USER does not make the process another user's.
func TestCurrentIsNotWhatTheEnvironmentSays(t *testing.T) {
	t.Setenv("USER", "somebody-else")
	t.Setenv("LOGNAME", "somebody-else")
	me, err := account.Current(t.Context())
	require.NoError(t, err)
	require.Equal(t, os.Getuid(), me.UID)
	require.NotEqual(t, "somebody-else", me.Name)
}

// Users of a name service other than /etc/passwd, as at a site with LDAP:
// libnss-extrausers reads its own files, which os/user does not.
func TestPeopleOfAnotherNameService(t *testing.T) {
	if testing.Short() {
		t.Skip("needs root and libnss-extrausers")
	}
	accounttest.Add(t, accounttest.Person{Name: "ldapperson", UID: 61234, Group: "ldapteam", GID: 61235})
	u, err := account.ByName(t.Context(), "ldapperson")
	require.NoError(t, err)
	require.Equal(t, account.User{Name: "ldapperson", UID: 61234, GID: 61235}, u)
	u, err = account.ByID(t.Context(), 61234)
	require.NoError(t, err)
	require.Equal(t, "ldapperson", u.Name)
	in, err := account.Member(t.Context(), "ldapperson", "ldapteam")
	require.NoError(t, err)
	require.True(t, in)
	in, err = account.Member(t.Context(), "ldapperson", "root")
	require.NoError(t, err)
	require.False(t, in)
}
