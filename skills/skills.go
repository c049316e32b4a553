// Package skills holds the project's agent skills: one folder for each, after
// the Agent Skills specification, embedded so that the binary carries them. It
// loads and validates them; what they say is theirs.
package skills

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/goccy/go-yaml"
)

// FS holds every skill's folder as it stands in the repository.
//
//go:embed all:*/SKILL.md all:*/references all:*/scripts
var FS embed.FS

// A Skill is one folder: a description for those who choose, instructions for
// those who follow, and reference files read when needed.
type Skill struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	// Body is SKILL.md without its front matter; BodyZH is the Chinese version.
	Body   string `json:"body"`
	BodyZH string `json:"body_zh,omitempty"`
	// Files are the paths of all files of the skill, relative to its folder.
	Files []string `json:"files"`
}

// frontMatter is what SKILL.md begins with.
type frontMatter struct {
	Name          string            `yaml:"name"`
	Description   string            `yaml:"description"`
	License       string            `yaml:"license"`
	Compatibility string            `yaml:"compatibility"`
	Metadata      map[string]string `yaml:"metadata"`
	AllowedTools  string            `yaml:"allowed-tools"`
}

// zhFile is where the Chinese version of a skill's instructions lies.
const zhFile = "references/SKILL.zh.md"

// embedded reads FS once, on first use, so that starting the binary costs nothing.
var embedded = sync.OnceValues(func() ([]Skill, error) { return readAll(FS) })

// All returns the embedded skills in the order of their names.
func All() []Skill {
	list, err := embedded()
	if err != nil {
		// The embedded folders are checked by this package's tests.
		panic(fmt.Sprintf("skills: embedded: %v", err))
	}
	return slices.Clone(list)
}

// Get returns the embedded skill of that name.
func Get(name string) (Skill, bool) {
	list := All()
	i := slices.IndexFunc(list, func(s Skill) bool { return s.Name == name })
	if i < 0 {
		return Skill{}, false
	}
	return list[i], true
}

// readAll reads every folder of fsys that holds a SKILL.md.
func readAll(fsys fs.FS) ([]Skill, error) {
	found, err := fs.Glob(fsys, "*/SKILL.md")
	if err != nil {
		return nil, err
	}
	list := make([]Skill, 0, len(found))
	for _, name := range found {
		s, err := load(fsys, path.Dir(name))
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, nil
}

func load(fsys fs.FS, dir string) (Skill, error) {
	text, err := fs.ReadFile(fsys, path.Join(dir, "SKILL.md"))
	if err != nil {
		return Skill{}, err
	}
	fm, body, err := split(string(text))
	if err != nil {
		return Skill{}, fmt.Errorf("%s/SKILL.md: %w", dir, err)
	}
	s := Skill{Name: fm.Name, Description: fm.Description, Body: body}
	if zh, err := fs.ReadFile(fsys, path.Join(dir, zhFile)); err == nil {
		s.BodyZH = string(zh)
	}
	err = fs.WalkDir(fsys, dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		s.Files = append(s.Files, strings.TrimPrefix(p, dir+"/"))
		return nil
	})
	return s, err
}

// split parts the front matter from the instructions.
func split(text string) (frontMatter, string, error) {
	var fm frontMatter
	rest, ok := strings.CutPrefix(text, "---\n")
	if !ok {
		return fm, "", fmt.Errorf("no front matter: the first line must be ---")
	}
	head, body, ok := strings.Cut(rest, "\n---\n")
	if !ok {
		return fm, "", fmt.Errorf("front matter does not end: a line --- is missing")
	}
	if err := yaml.Unmarshal([]byte(head), &fm); err != nil {
		return fm, "", fmt.Errorf("front matter: %w", err)
	}
	return fm, strings.TrimLeft(body, "\n"), nil
}

// File returns one file of a skill, such as "references/commands.md".
func File(name, file string) ([]byte, error) { return fs.ReadFile(FS, path.Join(name, file)) }
