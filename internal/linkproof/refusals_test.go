package linkproof_test

import (
	"crypto/rand"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/account"
	"github.com/megatron-ops/megatron-ops/internal/linkproof"
	"github.com/megatron-ops/megatron-ops/internal/munge"
)

// Without MUNGE a file is accepted as proof only if it is the user's own and nobody
// else can have written it while the code was valid.
func TestWhatAFileMustBeToProveAnything(t *testing.T) {
	me, err := account.Current(t.Context())
	require.NoError(t, err)
	isRoot := me.UID == 0
	if isRoot { // root is nobody in particular: the files are given to somebody who is
		me, err = account.ByID(t.Context(), 65534)
		require.NoError(t, err)
	}
	given := time.Now()
	written := func(after time.Duration) func(*testing.T, string) {
		return func(t *testing.T, file string) {
			require.NoError(t, os.Chtimes(file, time.Time{}, given.Add(after)))
		}
	}
	mode := func(perm os.FileMode) func(*testing.T, string) {
		return func(t *testing.T, file string) { require.NoError(t, os.Chmod(file, perm)) }
	}
	ofUser := func(uid int) func(*testing.T, string) {
		return func(t *testing.T, file string) {
			if os.Chown(file, uid, -1) != nil {
				t.Skip("only root gives files away")
			}
		}
	}
	for name, c := range map[string]struct {
		change func(t *testing.T, file string)
		why    string // empty: it is believed
	}{
		"as it is written":         {func(*testing.T, string) {}, ""},
		"by a clock that is late":  {written(-59 * time.Second), ""},
		"before the code":          {written(-61 * time.Second), "not written while the code was good"},
		"at the code's end":        {written(linkproof.Life + 59*time.Second), ""},
		"after it":                 {written(linkproof.Life + 61*time.Second), "not written while the code was good"},
		"nobody else may write it": {mode(0o600), ""},
		"its group may":            {mode(0o664), "others may write the file"},
		"everybody may":            {mode(0o646), "others may write the file"},
		"it has another name": {func(t *testing.T, file string) {
			require.NoError(t, os.Link(file, file+"-too"))
		}, "the file has further names"},
		"it is a link to one": {func(t *testing.T, file string) {
			require.NoError(t, os.Rename(file, file+"-too"))
			require.NoError(t, os.Symlink(file+"-too", file))
		}, "it is a link"},
		"it is a folder": {func(t *testing.T, file string) {
			require.NoError(t, os.Remove(file))
			require.NoError(t, os.Mkdir(file, 0o755))
		}, "is a directory"},
		"it is a pipe": {func(t *testing.T, file string) {
			require.NoError(t, os.Remove(file))
			require.NoError(t, syscall.Mkfifo(file, 0o644))
		}, "it is not a plain file"},
		"it is root's":              {ofUser(0), "root is nobody in particular"},
		"its owner is nobody known": {ofUser(3_999_999), "3999999"},
		"it holds another text": {func(t *testing.T, file string) {
			require.NoError(t, os.WriteFile(file, []byte("megatron-ops link "+rand.Text()), 0o644))
		}, "over another text than the code"},
		"it holds nothing": {func(t *testing.T, file string) { require.NoError(t, os.Truncate(file, 0)) }, "over another text than the code"},
		"anybody may put files in its place": {func(t *testing.T, file string) {
			require.NoError(t, os.Chmod(filepath.Dir(file), 0o777))
		}, "that nobody else may write, or sticky (chmod 1777)"},
		"anybody may put a folder in its folder's place": {func(t *testing.T, file string) {
			require.NoError(t, os.Chmod(filepath.Dir(filepath.Dir(file)), 0o777))
		}, "that nobody else may write, or sticky (chmod 1777)"},
		"the folder is somebody else's": {func(t *testing.T, file string) {
			if os.Chown(filepath.Dir(file), 61301, -1) != nil {
				t.Skip("only root gives folders away")
			}
		}, "must be a folder of root's or of this server's"},
		"anybody may put files beside it": {func(t *testing.T, file string) {
			require.NoError(t, os.Chmod(filepath.Dir(file), 0o777|os.ModeSticky))
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f, code := linkproof.Folder{Dir: filepath.Join(t.TempDir(), "links")}, rand.Text()
			require.NoError(t, os.Mkdir(f.Dir, 0o755))
			require.NoError(t, f.Write(t.Context(), " "+strings.ToLower(code)+"\n"), "as it is pasted")
			files, err := filepath.Glob(filepath.Join(f.Dir, "megatron-ops-link-*"))
			require.NoError(t, err)
			require.Len(t, files, 1)
			if isRoot {
				require.NoError(t, os.Chown(files[0], me.UID, -1))
			}
			c.change(t, files[0])
			u, err := f.Owner(t.Context(), code, given)
			if c.why != "" {
				require.ErrorContains(t, err, c.why)
				return
			}
			require.NoError(t, err)
			require.Equal(t, me.Name, u.Name)
		})
	}
	f := linkproof.Folder{Dir: t.TempDir()}
	for _, none := range []string{"", "ABC", rand.Text() + "A", "../../../../../../etc/passwd"} {
		require.ErrorContains(t, f.Write(t.Context(), none), "is not a code")
		_, err := f.Owner(t.Context(), none, given)
		require.ErrorContains(t, err, "it is for no code")
	}
}

// A proof replaces an earlier one, but never a file of another user. Without an answer
// from MUNGE, which must seal it, there is no proof.
func TestAProofIsWrittenAnew(t *testing.T) {
	f, code := linkproof.Folder{Dir: t.TempDir()}, rand.Text()
	proofs := func() []string {
		files, err := filepath.Glob(filepath.Join(f.Dir, "megatron-ops-link-*"))
		require.NoError(t, err)
		return files
	}
	for range 2 {
		require.NoError(t, f.Write(t.Context(), code))
		text, err := os.ReadFile(proofs()[0])
		require.NoError(t, err)
		require.Equal(t, "megatron-ops link "+code, string(text))
		require.NoError(t, os.WriteFile(proofs()[0], []byte("something longer than a proof is, by far and more"), 0o600))
	}
	sealed := linkproof.Folder{Dir: f.Dir, Munge: &munge.Service{Socket: filepath.Join(f.Dir, "none")}}
	_, err := sealed.Owner(t.Context(), code, time.Now())
	var refused *linkproof.Refused
	require.ErrorAs(t, err, &refused)
	require.NotContains(t, err.Error(), "another text", "nothing is believed that is not sealed")
	other := rand.Text()
	require.Error(t, sealed.Write(t.Context(), other))
	require.Len(t, proofs(), 1, "nothing is left of what could not be sealed")

	require.NoError(t, os.Remove(proofs()[0]))
	_, err = f.Owner(t.Context(), code, time.Now())
	require.ErrorIs(t, err, fs.ErrNotExist, "not yet")
	require.NoError(t, f.Write(t.Context(), code))
	place := proofs()[0]
	require.NoError(t, os.Remove(place))
	require.NoError(t, os.MkdirAll(filepath.Join(place, "x"), 0o755))
	require.ErrorContains(t, f.Write(t.Context(), code), "ask for a new code")
	gone := linkproof.Folder{Dir: filepath.Join(f.Dir, "gone")}
	require.ErrorIs(t, gone.Write(t.Context(), code), fs.ErrNotExist)
	_, err = gone.Owner(t.Context(), code, time.Now())
	require.ErrorContains(t, err, "folder of link codes")
}
