// Package skills embeds the project's agent skills, one folder for each, in the format of
// the Agent Skills specification, and loads them.
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

// FS holds the files of every skill's folder.
//
//go:embed all:*/SKILL.md all:*/references all:*/scripts
var FS embed.FS

// A Skill is one folder: a description by which an agent chooses the skill, instructions,
// and reference files that the agent reads when needed.
type Skill struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	// Body is SKILL.md without its front matter; BodyZH is the Chinese version.
	Body   string `json:"body"`
	BodyZH string `json:"body_zh,omitempty"`
	// Files are the paths of all files of the skill, relative to its folder.
	Files []string `json:"files"`
}

// frontMatter is the YAML header of SKILL.md.
type frontMatter struct {
	Name          string            `yaml:"name"`
	Description   string            `yaml:"description"`
	License       string            `yaml:"license"`
	Compatibility string            `yaml:"compatibility"`
	Metadata      map[string]string `yaml:"metadata"`
	AllowedTools  string            `yaml:"allowed-tools"`
}

// zhFile is the path of the Chinese instructions within a skill's folder.
const zhFile = "references/SKILL.zh.md"

// embedded loads FS once, on first use, so that it costs no time when the program starts.
var embedded = sync.OnceValues(func() ([]Skill, error) { return readAll(FS) })

// All returns the embedded skills, sorted by name.
func All() []Skill {
	list, err := embedded()
	if err != nil {
		// Cannot happen: this package's tests load the embedded folders.
		panic(fmt.Sprintf("skills: embedded: %v", err))
	}
	return slices.Clone(list)
}

// Get returns the embedded skill with this name.
func Get(name string) (Skill, bool) {
	list := All()
	i := slices.IndexFunc(list, func(s Skill) bool { return s.Name == name })
	if i < 0 {
		return Skill{}, false
	}
	return list[i], true
}

// readAll loads every folder of fsys with a SKILL.md.
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

func split(text string) (frontMatter, string, error) {
	var fm frontMatter
	rest, ok := strings.CutPrefix(text, "---\n")
	if !ok {
		return fm, "", fmt.Errorf("no front matter: the first line must be ---")
	}
	head, body, ok := strings.Cut(rest, "\n---\n")
	if !ok {
		return fm, "", fmt.Errorf("front matter has no end: a line --- is missing")
	}
	if err := yaml.Unmarshal([]byte(head), &fm); err != nil {
		return fm, "", fmt.Errorf("front matter: %w", err)
	}
	return fm, strings.TrimLeft(body, "\n"), nil
}

// File returns one file of a skill, such as "references/commands.md".
func File(name, file string) ([]byte, error) { return fs.ReadFile(FS, path.Join(name, file)) }
