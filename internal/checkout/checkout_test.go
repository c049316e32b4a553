package checkout

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
)

const tree = "/lustre/alice/Megatron-LM"

// files maps the absolute paths of a worktree's files to their contents.
type files map[string]string

func (f files) read(path string) ([]byte, error) {
	text, ok := f[path]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return []byte(text), nil
}

func packageInfo(major, minor, patch, pre string) string {
	return "# comment\nMAJOR = " + major + "\nMINOR = " + minor + "\nPATCH = " + patch + "\nPRE_RELEASE = '" + pre + "'\n\nVERSION = (MAJOR, MINOR, PATCH, PRE_RELEASE)\n"
}

func TestSourcesAreAskedInTheirOrder(t *testing.T) {
	s := Sources{
		Spec: "0.16.1", Worktree: tree, Image: "nvcr.io/nvidia/nemo:26.02", Site: "0.15",
		Read: files{tree + "/megatron/core/package_info.py": packageInfo("0", "18", "2", "")}.read,
	}
	for _, c := range []struct {
		from, release string
		drop          func()
	}{
		{"specification", "0.16.1", func() { s.Spec = "" }},
		{"worktree", "0.18.2", func() { s.Read = nil }},
		{"image", "0.16.1", func() { s.Image = "nvcr.io/nvidia/pytorch:25.09-py3" }},
		{"configuration", "0.15.3", func() { s.Site = "" }},
		{"newest", "main", func() {}},
	} {
		f := Find(s)
		require.Equal(t, c.from, f.From)
		require.Equal(t, c.release, f.Release)
		require.NotEmpty(t, f.Why.In(lang.EN))
		require.NotEqual(t, f.Why.In(lang.EN), f.Why.In(lang.ZH))
		c.drop()
	}
}

func TestWorktreeTellsItsRelease(t *testing.T) {
	commit := megatron.V017.Commit()
	for _, c := range []struct {
		name, release, version string
		exact                  bool
		files                  files
	}{
		{"a release", "0.17.1", "0.17.1", true, files{"megatron/core/package_info.py": packageInfo("0", "17", "1", "")}},
		{"before a release", "0.17.1", "0.17.0rc0", false, files{"megatron/core/package_info.py": packageInfo("0", "17", "0", "rc0")}},
		{"newer than all", "main", "0.21.0", false, files{"megatron/core/package_info.py": packageInfo("0", "21", "0", "")}},
		{"older than all", "0.15.3", "0.12.0", false, files{"megatron/core/package_info.py": packageInfo("0", "12", "0", "")}},
		{"the commit is a release's", "0.17.1", "core_v0.17.1", true, files{"megatron/core/package_info.py": packageInfo("0", "17", "0", ""), ".git/HEAD": commit + "\n"}},
		{"another commit", "0.18.2", "0.18.2", true, files{"megatron/core/package_info.py": packageInfo("0", "18", "2", ""), ".git/HEAD": strings.Repeat("0a", 20)}},
		{"a branch", "0.17.1", "core_v0.17.1", true, files{
			"megatron/core/package_info.py": packageInfo("0", "17", "0", ""), ".git/HEAD": "ref: refs/heads/mine\n", ".git/refs/heads/mine": commit + "\n",
		}},
		{"a packed branch", "0.17.1", "core_v0.17.1", true, files{
			"megatron/core/package_info.py": packageInfo("0", "17", "0", ""), ".git/HEAD": "ref: refs/heads/mine\n",
			".git/packed-refs": "# pack-refs with: peeled\n" + strings.Repeat("1b", 20) + " refs/heads/main\n" + commit + " refs/heads/mine\n",
		}},
		{"git's own work tree", "0.17.1", "core_v0.17.1", true, files{
			"megatron/core/package_info.py": packageInfo("0", "17", "0", ""), ".git": "gitdir: ../main/.git/worktrees/mine\n",
			"../main/.git/worktrees/mine/HEAD": "ref: refs/heads/mine\n", "../main/.git/worktrees/mine/commondir": "../..\n", "../main/.git/refs/heads/mine": commit,
		}},
	} {
		there := files{}
		for name, text := range c.files {
			if rest, up := strings.CutPrefix(name, "../"); up {
				there["/lustre/alice/"+rest] = text
				continue
			}
			there[tree+"/"+name] = text
		}
		f := Find(Sources{Worktree: tree, Read: there.read})
		require.Equal(t, c.release, f.Release, c.name)
		require.Equal(t, c.version, f.Version, c.name)
		require.Equal(t, c.exact, f.Exact, c.name)
		require.Equal(t, !c.exact, strings.Contains(f.Why.In(lang.EN), "the nearest release whose code the rules were read from is "+c.release), c.name)
	}
	for name, text := range map[string]string{"no number": "import os\n", "half a number": "MAJOR = 0\n", "words": "MAJOR = x\nMINOR = y\nPATCH = z\n"} {
		require.Equal(t, "newest", Find(Sources{Worktree: tree, Read: files{tree + "/megatron/core/package_info.py": text}.read}).From, name)
	}
}

func TestAnUnknownCommitIsLookedUpElsewhere(t *testing.T) {
	f := Find(Sources{Spec: "deadbeef01", Site: "0.18"})
	require.Equal(t, "configuration", f.From)
	require.Contains(t, f.Why.In(lang.EN), "deadbeef01 is no commit of a release")
	require.Contains(t, f.Why.In(lang.ZH), "deadbeef01")
}
