package within

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// site creates a folder that may be read beside one that may not.
func site(t *testing.T) (inside, outside string) {
	t.Helper()
	top := t.TempDir()
	inside, outside = filepath.Join(top, "in"), filepath.Join(top, "out")
	require.NoError(t, os.MkdirAll(filepath.Join(inside, "sub"), 0o755))
	require.NoError(t, os.MkdirAll(outside, 0o755))
	for p, text := range map[string]string{
		filepath.Join(inside, "a.log"): "a", filepath.Join(inside, "sub", "b.log"): "b", filepath.Join(outside, "a.log"): "secret",
	} {
		require.NoError(t, os.WriteFile(p, []byte(text), 0o600))
	}
	return inside, outside
}

func read(t *testing.T, f *Folders, path string) (string, error) {
	t.Helper()
	file, err := f.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	b, err := io.ReadAll(file)
	require.NoError(t, err)
	return string(b), nil
}

func TestNothingOutsideIsOpened(t *testing.T) {
	t.Parallel()
	in, out := site(t)
	require.NoError(t, os.Symlink(out, filepath.Join(in, "door")))
	require.NoError(t, os.Symlink(filepath.Join(out, "a.log"), filepath.Join(in, "window")))
	require.NoError(t, os.Symlink("a.log", filepath.Join(in, "latest")))
	alias := filepath.Join(filepath.Dir(in), "alias")
	require.NoError(t, os.Symlink(in, alias))
	f, err := Open(alias, filepath.Join(in, "missing"))
	require.NoError(t, err)
	defer f.Close()
	for _, p := range []string{in + "/a.log", alias + "/a.log", in + "/latest", in + "/sub/../a.log"} {
		got, err := read(t, f, p)
		require.NoError(t, err, p)
		require.Equal(t, "a", got)
	}
	for _, p := range []string{in + "/door/a.log", in + "/window", out + "/a.log", in + "/../out/a.log", "a.log", in + "/sub", in} {
		_, err := read(t, f, p)
		require.Error(t, err, p)
		if p != in && p != in+"/sub" {
			_, err = f.Stat(p)
			require.Error(t, err, p)
		}
	}
	var seen []string
	require.NoError(t, f.WalkDir(in, func(p string, d fs.DirEntry, err error) error {
		require.NoError(t, err)
		if d.Type().IsRegular() {
			seen = append(seen, p)
		}
		return nil
	}))
	require.Equal(t, []string{in + "/a.log", in + "/sub/b.log"}, seen)
	found, err := f.Glob(in + "/*.log")
	require.NoError(t, err)
	require.Equal(t, []string{in + "/a.log"}, found)
	found, err = f.Glob(in + "/door/*.log")
	require.NoError(t, err)
	require.Empty(t, found)
	_, err = f.Glob(out + "/*")
	require.ErrorIs(t, err, fs.ErrPermission)
}

// A file that is swapped for a link again and again is never followed.
func TestALinkThatComesLaterLeadsNowhere(t *testing.T) {
	t.Parallel()
	in, out := site(t)
	f, err := Open(in)
	require.NoError(t, err)
	defer f.Close()
	stop := make(chan struct{})
	var swaps sync.WaitGroup
	defer swaps.Wait()
	defer close(stop)
	swaps.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			next := filepath.Join(in, "next")
			if i%2 == 0 {
				_ = os.Symlink(filepath.Join(out, "a.log"), next)
			} else {
				_ = os.WriteFile(next, []byte("a"), 0o600)
			}
			_ = os.Rename(next, filepath.Join(in, "a.log"))
		}
	})
	for opened, refused := 0, 0; opened < 300 || refused < 300; {
		got, err := read(t, f, in+"/a.log")
		if err != nil {
			refused++
			continue
		}
		opened++
		require.NotContains(t, got, "secret")
	}
}

func TestOnlyTheOwnersFilesAreOpened(t *testing.T) {
	t.Parallel()
	in, _ := site(t)
	f, err := Holding(in + "/a.log")
	require.NoError(t, err)
	defer f.Close()
	f.Owner = os.Getuid()
	_, err = read(t, f, in+"/a.log")
	require.NoError(t, err)
	f.Owner++
	_, err = read(t, f, in+"/a.log")
	require.ErrorIs(t, err, fs.ErrPermission)
}

// Nil allows the whole machine, except for files that would block.
func TestWithoutFoldersNamesAreOpenedAsTheyAre(t *testing.T) {
	t.Parallel()
	in, _ := site(t)
	var f *Folders
	f.Close()
	require.NoError(t, os.Symlink("a.log", filepath.Join(in, "latest")))
	got, err := read(t, f, in+"/latest")
	require.NoError(t, err)
	require.Equal(t, "a", got)
	require.NoError(t, syscall.Mkfifo(in+"/pipe", 0o600))
	_, err = f.Open(in + "/pipe")
	require.ErrorContains(t, err, "not a regular file")
	found, err := f.Glob(in + "/*.log")
	require.NoError(t, err)
	require.Len(t, found, 1)
}
