package skills

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Limits: maxName and maxDescription are those of the Agent Skills specification.
const (
	maxName        = 64
	maxDescription = 1024
	maxLines       = 500
)

var (
	namePattern = regexp.MustCompile(`^[a-z0-9]+(?:-[a-z0-9]+)*$`)
	link        = regexp.MustCompile(`\]\(([^)#\s]+)(?:#[^)]*)?\)`)
	fence       = regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```")
	command     = regexp.MustCompile("`?\\bmegatron-ops ([a-z][a-z-]*)")
)

// Validate checks every skill of fsys against the Agent Skills specification. Beyond it,
// Validate requires a Chinese version, links to existing files, shell blocks that parse and,
// unless commands is nil, only subcommands of megatron-ops in that list. It returns every
// problem.
func Validate(fsys fs.FS, commands []string) []error {
	dirs, err := fs.Glob(fsys, "*/SKILL.md")
	if err != nil {
		return []error{err}
	}
	if len(dirs) == 0 {
		return []error{fmt.Errorf("no skill found: want folders with a SKILL.md")}
	}
	var errs []error
	for _, p := range dirs {
		errs = append(errs, validate(fsys, path.Dir(p), commands)...)
	}
	return errs
}

func validate(fsys fs.FS, dir string, commands []string) (errs []error) {
	add := func(file, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s/%s: %s", dir, file, fmt.Sprintf(format, args...)))
	}
	text, err := fs.ReadFile(fsys, path.Join(dir, "SKILL.md"))
	if err != nil {
		return []error{err}
	}
	fm, _, err := split(string(text))
	if err != nil {
		add("SKILL.md", "%v", err)
		return errs
	}
	if fm.Name != dir {
		add("SKILL.md", "name %q is not the folder's name", fm.Name)
	}
	if !namePattern.MatchString(fm.Name) || len(fm.Name) > maxName {
		add("SKILL.md", "name %q: want at most %d lower-case letters, digits and single hyphens", fm.Name, maxName)
	}
	if n := len(fm.Description); n == 0 || n > maxDescription {
		add("SKILL.md", "description has %d characters, want 1 to %d", n, maxDescription)
	}
	if n := strings.Count(string(text), "\n"); n >= maxLines {
		add("SKILL.md", "%d lines, want fewer than %d: move detail to references/", n, maxLines)
	}
	if _, err := fs.Stat(fsys, path.Join(dir, zhFile)); err != nil {
		add(zhFile, "missing: every skill has a Chinese version")
	}
	err = fs.WalkDir(fsys, dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := fs.ReadFile(fsys, p)
		if err != nil {
			return err
		}
		file := strings.TrimPrefix(p, dir+"/")
		switch path.Ext(p) {
		case ".md":
			for _, err := range checkMarkdown(fsys, p, string(body), commands) {
				add(file, "%v", err)
			}
		case ".sh", ".slurm":
			if err := parses(string(body)); err != nil {
				add(file, "%v", err)
			}
		}
		return nil
	})
	if err != nil {
		errs = append(errs, err)
	}
	return errs
}

func checkMarkdown(fsys fs.FS, file, text string, commands []string) (errs []error) {
	for _, m := range link.FindAllStringSubmatch(text, -1) {
		if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
			continue
		}
		if _, err := fs.Stat(fsys, path.Join(path.Dir(file), m[1])); err != nil {
			errs = append(errs, fmt.Errorf("link %s has no target", m[1]))
		}
	}
	for _, m := range fence.FindAllStringSubmatch(text, -1) {
		if m[1] == "bash" || m[1] == "sh" {
			if err := parses(m[2]); err != nil {
				errs = append(errs, fmt.Errorf("shell block: %w", err))
			}
		}
	}
	if commands != nil {
		for _, m := range command.FindAllStringSubmatch(text, -1) {
			if !slices.Contains(commands, m[1]) {
				errs = append(errs, fmt.Errorf("megatron-ops has no command %s", m[1]))
			}
		}
	}
	return errs
}

// parses returns an error where text is not valid bash.
func parses(text string) error {
	_, err := syntax.NewParser().Parse(strings.NewReader(text), "")
	return err
}
