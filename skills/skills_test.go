package skills_test

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/skills"
)

// commands are the subcommands that a skill may name.
var commands = []string{
	"constants", "plan", "render", "submit", "status", "list", "cancel", "logs", "diagnose", "ask", "checkpoint",
	"lint", "skills", "demo", "doctor", "init", "mcp", "serve", "recommend", "memory", "recipes", "image",
}

func TestEmbeddedSkillsAreValid(t *testing.T) {
	for _, err := range skills.Validate(skills.FS, commands) {
		t.Error(err)
	}
}

func TestAllCarriesBothLanguages(t *testing.T) {
	list := skills.All()
	require.NotEmpty(t, list)
	for _, s := range list {
		require.NotEmpty(t, s.Body, s.Name)
		require.NotEmpty(t, s.BodyZH, s.Name)
		require.Contains(t, s.Files, "SKILL.md", s.Name)
	}
}

func TestGet(t *testing.T) {
	for _, want := range skills.All() {
		got, ok := skills.Get(want.Name)
		require.True(t, ok, want.Name)
		require.Equal(t, want, got)
	}
	_, ok := skills.Get("no-such-skill")
	require.False(t, ok)
}

// Installers copy the skills' folders as they are, so the folders must not contain files
// that only this project needs.
func TestFoldersContainOnlyFilesForAgents(t *testing.T) {
	for _, s := range skills.All() {
		for _, file := range s.Files {
			folder, _, nested := strings.Cut(file, "/")
			require.True(t, file == "SKILL.md" || nested && slices.Contains([]string{"references", "scripts", "assets"}, folder), "%s/%s", s.Name, file)
		}
		onDisk, err := filepath.Glob(filepath.Join(s.Name, "*"))
		require.NoError(t, err)
		for _, path := range onDisk {
			require.Contains(t, []string{"SKILL.md", "references", "scripts", "assets"}, filepath.Base(path))
		}
	}
}

// firstHost matches a shell pipeline that takes the first node of a job.
var firstHost = regexp.MustCompile(`(.{0,40})scontrol show hostnames? [^|\n]*\|\s*head\b`)

// head closes the pipe after the first line. Under pipefail, the SIGPIPE of scontrol then
// ends the script of a large job. So the skills must show the form that render writes.
func TestFirstHostIgnoresSIGPIPE(t *testing.T) {
	found := 0
	for _, s := range skills.All() {
		for _, file := range s.Files {
			raw, err := skills.File(s.Name, file)
			require.NoError(t, err)
			for _, m := range firstHost.FindAllStringSubmatch(string(raw), -1) {
				found++
				require.Contains(t, m[1], "set +o pipefail; ", "%s/%s: %s", s.Name, file, m[0])
			}
		}
	}
	require.Positive(t, found)
}

func TestValidate(t *testing.T) {
	fsys := fstest.MapFS{"Bad_Name/SKILL.md": {Data: []byte("---\nname: other\ndescription: \"\"\n---\n[x](gone.md)\n```bash\nif\n```\nmegatron-ops fly\n")}}
	var all string
	for _, err := range skills.Validate(fsys, commands) {
		all += err.Error() + "\n"
	}
	for _, want := range []string{"not the folder's name", "0 characters", "Chinese version", "gone.md has no target", "shell block", "no command fly"} {
		require.Contains(t, all, want)
	}
}
