//go:generate go run ./flaggen -flags flaggen/flags.jsonl -o flags_gen.go -sources ../..

package megatron

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A Release is one of the known Megatron-LM releases. A later release is a
// greater number, so < and >= compare releases. The zero value means the newest.
type Release uint8

type releaseFacts struct{ name, tag, commit, date string }

// Releases returns every known release, oldest first.
func Releases() []Release {
	all := make([]Release, len(releases))
	for i := range all {
		all[i] = Release(i + 1)
	}
	return all
}

// OrNewest returns the release, or the newest for the zero value.
func (r Release) OrNewest() Release {
	if r == 0 || int(r) > len(releases) {
		return Release(len(releases))
	}
	return r
}

// String returns the release's name, such as 0.17.1 or main.
func (r Release) String() string { return releases[r.OrNewest()-1].name }

// Tag returns the git tag, or main.
func (r Release) Tag() string { return releases[r.OrNewest()-1].tag }

// Commit returns the commit from which the release's flags and rules were read.
func (r Release) Commit() string { return releases[r.OrNewest()-1].commit }

// Date returns the day of Commit, such as 2026-05-25.
func (r Release) Date() string { return releases[r.OrNewest()-1].date }

// A Match is the release that a version text stands for.
type Match struct {
	Release Release
	// Exact reports that the release matches the requested version or range.
	// Otherwise Release is the nearest known release.
	Exact bool
}

var (
	versionText = regexp.MustCompile(`^(?:core_[vr])?v?(\d+)\.(\d+)(?:\.(\d+))?(?:[.-]?(?:rc|dev|a|b)\d*)?(?:\+[0-9A-Za-z.]+)?$`)
	commitText  = regexp.MustCompile(`^[0-9a-f]{7,40}$`)
	boundText   = regexp.MustCompile(`^(>=|<=|==|~=|>|<)?\s*(\S+)$`)
)

// ParseRelease parses a version of Megatron-LM: a release (0.17.1, core_v0.17.1,
// core_r0.17.0), a minor version (0.17), a range (">=0.16,<0.18" stands for the
// newest release in it), a commit, or main. It returns false where the text is
// none of these, or a commit that is not known.
func ParseRelease(text string) (Match, bool) {
	text = strings.TrimSpace(text)
	lower := strings.ToLower(text)
	switch {
	case lower == "main" || lower == "dev" || lower == "latest":
		return Match{Main, lower == "main"}, true
	case commitText.MatchString(lower) && strings.ContainsAny(lower, "0123456789"):
		for i, r := range releases {
			if strings.HasPrefix(r.commit, lower) {
				return Match{Release(i + 1), true}, true
			}
		}
		return Match{}, false
	case strings.ContainsAny(text, "<>=~,"):
		return parseRange(text)
	}
	v, ok := parseVersion(text)
	if !ok {
		return Match{}, false
	}
	return v.nearest(), true
}

// IsCommit reports whether text has the form of a commit hash.
func IsCommit(text string) bool { return commitText.MatchString(strings.ToLower(text)) }

// A version holds major, minor and patch; patch is -1 where it is not given.
type version [3]int

func parseVersion(text string) (version, bool) {
	m := versionText.FindStringSubmatch(strings.TrimPrefix(text, "megatron-core=="))
	if m == nil {
		return version{}, false
	}
	v := version{-1, -1, -1}
	for i, part := range m[1:] {
		if part == "" {
			continue
		}
		n, err := strconv.Atoi(part)
		if err != nil {
			return version{}, false
		}
		v[i] = n
	}
	return v, true
}

func (v version) minor() version { return version{v[0], v[1], -1} }

func compare(a, b version) int { return slices.Compare(a[:], b[:]) }

// numbered returns the versions of all releases except main.
func numbered() []version {
	var all []version
	for _, r := range releases {
		if v, ok := parseVersion(r.name); ok {
			all = append(all, v)
		}
	}
	return all
}

// nearest returns the release with the same minor version, else the next older
// release, else the oldest. For a version newer than every release it returns
// Main.
func (v version) nearest() Match {
	all := numbered()
	for i, r := range all {
		if r.minor() == v.minor() {
			return Match{Release(i + 1), v[2] < 0 || v == r}
		}
	}
	if compare(v, all[len(all)-1]) > 0 {
		return Match{Main, false}
	}
	at := Release(1)
	for i, r := range all {
		if compare(r, v) < 0 {
			at = Release(i + 1)
		}
	}
	return Match{at, false}
}

// A bound is one condition of a range, such as >=0.16.
type bound struct {
	operator string
	version  version
}

// parseRange finds the newest release within all bounds.
func parseRange(text string) (Match, bool) {
	var bounds []bound
	for part := range strings.SplitSeq(text, ",") {
		m := boundText.FindStringSubmatch(strings.TrimSpace(part))
		if m == nil {
			return Match{}, false
		}
		v, ok := parseVersion(m[2])
		if !ok {
			return Match{}, false
		}
		bounds = append(bounds, bound{m[1], v})
	}
	for i, r := range slices.Backward(numbered()) {
		if !slices.ContainsFunc(bounds, func(b bound) bool { return !b.allows(r) }) {
			return Match{Release(i + 1), true}, true
		}
	}
	return Match{}, false
}

// allows reports whether a release satisfies the bound. Only the minor version counts
// for a bound without a patch number.
func (b bound) allows(r version) bool {
	if b.version[2] < 0 {
		r = r.minor()
	}
	order := compare(r, b.version)
	switch b.operator {
	case ">=":
		return order >= 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	case "<":
		return order < 0
	case "~=":
		return r.minor() == b.version.minor() && order >= 0
	}
	return order == 0
}

// A Span is one definition of a flag and the range of releases with this
// definition.
type Span struct {
	Flag Flag
	// Since and Until are the first and the last release with the definition.
	Since, Until Release
}

// FlagHistory returns a flag's definitions over the releases, oldest first. It
// returns none where no release has the flag.
func FlagHistory(name string) []Span {
	if !strings.HasPrefix(name, "-") {
		name = "--" + name
	}
	var spans []Span
	for _, f := range flagTable {
		if f.Name == name || slices.Contains(f.Aliases, name) {
			spans = append(spans, Span{f, f.first(), f.last()})
		}
	}
	slices.SortFunc(spans, func(a, b Span) int { return cmp.Compare(a.Since, b.Since) })
	return spans
}

// OlderDefault returns the default that a flag had before the one that it has now, and the last
// release with it. ok is false where it was always the same.
func OlderDefault(name string) (value string, until Release, ok bool) {
	now, _ := LookupFlag(name)
	for _, s := range slices.Backward(FlagHistory(name)) {
		if d := s.Flag.Default; d != "" && d != now.Default {
			return d, s.Until, true
		}
	}
	return "", 0, false
}

func (f *Flag) first() Release { return max(f.Since, 1) }

func (f *Flag) last() Release { return f.Until.OrNewest() }

// In reports whether the release has this definition of the flag.
func (f *Flag) In(r Release) bool {
	r = r.OrNewest()
	return f.first() <= r && r <= f.last()
}
