// Package checkout finds out which release of Megatron-LM a job runs: from the job's
// specification, the worktree's files, the image's tag, or the site's configuration.
package checkout

import (
	"path"
	"regexp"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
)

// Sources are the places that may name the release, in order of precedence.
type Sources struct {
	// Spec is the version that the job's specification names.
	Spec string
	// Worktree is the checkout's folder. Read reads a small file there; nil if the
	// folder is not accessible.
	Worktree string
	Read     func(path string) ([]byte, error)
	// Image is the container image.
	Image string
	// Site is the version that the configuration names.
	Site string
}

// Found is the release, and how it was found.
type Found struct {
	// Release is the release by which arguments are judged.
	Release string `json:"release"`
	// From is specification, worktree, image, configuration or newest.
	From string `json:"from"`
	// Version is the version as the source states it.
	Version string `json:"version,omitempty"`
	// Exact reports that the rules were read from exactly this version.
	Exact bool `json:"exact"`
	// Why explains all of this in a sentence.
	Why lang.Text `json:"-"`
}

// Find returns the release that the first source with an answer names.
func Find(s Sources) Found {
	var unread lang.Text
	if s.Spec != "" {
		if m, ok := megatron.ParseRelease(s.Spec); ok {
			return found("specification", s.Spec, m, lang.Text{EN: "the specification says %s", ZH: "规格中写明 %s"}.With(s.Spec))
		}
		unread = lang.Text{EN: "%s is no commit of a release; ", ZH: "%s 不是已知发布版的提交；"}.With(s.Spec)
	}
	f := s.findElsewhere()
	f.Why = lang.Text{EN: "%s%s", ZH: "%s%s"}.With(unread, f.Why)
	return f
}

// findElsewhere asks the sources other than the specification.
func (s Sources) findElsewhere() Found {
	if version, file, m, ok := s.fromWorktree(); ok {
		return found("worktree", version, m, lang.Text{EN: "the worktree's %s says %s", ZH: "工作树的 %s 表明是 %s"}.With(file, version))
	}
	if row, ok := megatron.LookupImage(s.Image); ok && row.Megatron != "" {
		if m, ok := megatron.ParseRelease(row.Megatron); ok {
			return found("image", row.Megatron, m, lang.Text{EN: "the image %s carries Megatron Core %s", ZH: "镜像 %s 内含 Megatron Core %s"}.With(row.Name(), row.Megatron))
		}
	}
	if m, ok := megatron.ParseRelease(s.Site); ok {
		return found("configuration", s.Site, m, lang.Text{EN: "the configuration says %s", ZH: "配置中写明 %s"}.With(s.Site))
	}
	newest := megatron.Release(0).OrNewest()
	return Found{Release: newest.String(), From: "newest", Why: lang.Text{
		EN: "the newest known, of %s, because nothing names the release that runs; set `megatron:` in the specification to name it",
		ZH: "已知最新版（%s），因为无从得知实际运行的版本；可在规格中用 `megatron:` 指定",
	}.With(newest.Date())}
}

func found(from, version string, m megatron.Match, why lang.Text) Found {
	if !m.Exact {
		why = lang.Text{EN: "%s; the nearest release whose code the rules were read from is %s", ZH: "%s；规则所读取的版本中与之最近的是 %s"}.With(why, m.Release.String())
	}
	return Found{Release: m.Release.String(), From: from, Version: version, Exact: m.Exact, Why: why}
}

var versionParts = regexp.MustCompile(`(?m)^(MAJOR|MINOR|PATCH|PRE_RELEASE)\s*=\s*['"]?([0-9A-Za-z.]*)['"]?`)

// fromWorktree reads the checked-out commit, if it is a release's, and else the version
// in the checkout's own package.
func (s Sources) fromWorktree() (version, file string, m megatron.Match, ok bool) {
	if s.Read == nil || s.Worktree == "" {
		return "", "", m, false
	}
	file = "megatron/core/package_info.py"
	text, err := s.Read(path.Join(s.Worktree, file))
	if err != nil {
		return "", "", m, false
	}
	parts := map[string]string{}
	for _, p := range versionParts.FindAllStringSubmatch(string(text), -1) {
		parts[p[1]] = p[2]
	}
	if commit := s.head(); commit != "" {
		if m, ok = megatron.ParseRelease(commit); ok {
			return m.Release.Tag(), ".git", m, true
		}
	}
	version = strings.Join([]string{parts["MAJOR"], parts["MINOR"], parts["PATCH"]}, ".") + parts["PRE_RELEASE"]
	m, ok = megatron.ParseRelease(version)
	return version, file, m, ok
}

// head returns the checked-out commit from git's files, or "" if it is unknown. In a
// linked work tree, .git is a file that names the folder.
func (s Sources) head() string {
	line := func(name string) string {
		text, err := s.Read(name)
		if err != nil {
			return ""
		}
		return strings.TrimSpace(string(text))
	}
	within := func(dir, name string) string {
		if path.IsAbs(name) {
			return name
		}
		return path.Join(dir, name)
	}
	dir := path.Join(s.Worktree, ".git")
	if linked, ok := strings.CutPrefix(line(dir), "gitdir: "); ok {
		dir = within(s.Worktree, linked)
	}
	ref, isRef := strings.CutPrefix(line(path.Join(dir, "HEAD")), "ref: ")
	if !isRef {
		return ref
	}
	common := dir
	if to := line(path.Join(dir, "commondir")); to != "" {
		common = within(dir, to)
	}
	if commit := line(path.Join(common, ref)); commit != "" {
		return commit
	}
	for packed := range strings.Lines(line(path.Join(common, "packed-refs"))) {
		if commit, name, _ := strings.Cut(strings.TrimSpace(packed), " "); name == ref {
			return commit
		}
	}
	return ""
}
