package skills_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/skills"
)

// commands are the subcommands that a skill may name.
var commands = []string{
	"constants", "plan", "render", "submit", "status", "list", "cancel", "logs", "diagnose", "ask",
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

// TestOnlyWhatAnAgentReadsIsInstalled keeps the folders, which installers copy as
// they are, free of what only this project needs.
func TestOnlyWhatAnAgentReadsIsInstalled(t *testing.T) {
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

func TestValidateNamesEveryFault(t *testing.T) {
	fsys := fstest.MapFS{"Bad_Name/SKILL.md": {Data: []byte("---\nname: other\ndescription: \"\"\n---\n[x](gone.md)\n```bash\nif\n```\nmegatron-ops fly\n")}}
	var all string
	for _, err := range skills.Validate(fsys, commands) {
		all += err.Error() + "\n"
	}
	for _, want := range []string{"not the folder's name", "0 characters", "Chinese version", "gone.md leads nowhere", "shell block", "no command fly"} {
		require.Contains(t, all, want)
	}
}
