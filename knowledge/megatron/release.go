//go:generate go run ./flaggen -flags flaggen/flags.jsonl -o flags_gen.go

package megatron

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A Release is one of the Megatron-LM releases whose flags and rules are
// known. The constants rise with time, so that releases compare with < and >=;
// the zero value stands for the newest.
type Release uint8

type releaseFacts struct{ name, tag, commit, date string }

// Releases returns every release that is known, oldest first.
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

// String is how people write the release: 0.17.1, or main.
func (r Release) String() string { return releases[r.OrNewest()-1].name }

// Tag is the git tag, or main.
func (r Release) Tag() string { return releases[r.OrNewest()-1].tag }

// Commit is the commit that the release's flags and rules were read from.
func (r Release) Commit() string { return releases[r.OrNewest()-1].commit }

// Date is the day of that commit.
func (r Release) Date() string { return releases[r.OrNewest()-1].date }

// A Match says how a text that names a version was understood.
type Match struct {
	Release Release
	// Exact reports that the rules were read from this very version. Otherwise
	// Release is the nearest that is known.
	Exact bool
}

var (
	versionText = regexp.MustCompile(`^(?:core_[vr])?v?(\d+)\.(\d+)(?:\.(\d+))?(?:[.-]?(?:rc|dev|a|b)\d*)?(?:\+[0-9A-Za-z.]+)?$`)
	commitText  = regexp.MustCompile(`^[0-9a-f]{7,40}$`)
	boundText   = regexp.MustCompile(`^(>=|<=|==|~=|>|<)?\s*(\S+)$`)
)

// ParseRelease understands what people write for a version of Megatron-LM: a
// release (0.17.1, core_v0.17.1, core_r0.17.0), its minor version (0.17), a
// range (">=0.16,<0.18": the newest within it), a commit, or main. It returns
// false where the text names no version.
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

// KnownCommit reports whether text looks like a commit, and nothing else.
func KnownCommit(text string) bool { return commitText.MatchString(strings.ToLower(text)) }

// A version is a number of three parts; patch is -1 where it is not given.
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

// numbered are the releases with a number: all but main.
func numbered() []version {
	var all []version
	for _, r := range releases {
		if v, ok := parseVersion(r.name); ok {
			all = append(all, v)
		}
	}
	return all
}

// nearest is the release with the same minor version; else the next older one,
// for a version in between; else the oldest. What is newer than every release
// is judged by main.
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

// parseRange finds the newest release that every bound allows.
func parseRange(text string) (Match, bool) {
	all := numbered()
	allowed := make([]bool, len(all))
	for i := range allowed {
		allowed[i] = true
	}
	for _, bound := range strings.Split(text, ",") {
		m := boundText.FindStringSubmatch(strings.TrimSpace(bound))
		if m == nil {
			return Match{}, false
		}
		v, ok := parseVersion(m[2])
		if !ok {
			return Match{}, false
		}
		for i, r := range all {
			allowed[i] = allowed[i] && within(r, m[1], v)
		}
	}
	for i := len(all) - 1; i >= 0; i-- {
		if allowed[i] {
			return Match{Release(i + 1), true}, true
		}
	}
	return Match{}, false
}

// within reports whether a release satisfies one bound. A bound without a
// patch number speaks of the minor version.
func within(r version, operator string, bound version) bool {
	if bound[2] < 0 {
		r = r.minor()
	}
	order := compare(r, bound)
	switch operator {
	case ">=":
		return order >= 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	case "<":
		return order < 0
	case "~=":
		return r.minor() == bound.minor() && order >= 0
	}
	return order == 0
}

// A Span is the releases that know a flag under one definition.
type Span struct {
	Flag Flag
	// Since and Until are the first and the last release.
	Since, Until Release
}

// FlagHistory returns the definitions that a flag had over the releases,
// oldest first; none where no release has it.
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

func (f *Flag) first() Release { return max(f.Since, 1) }

func (f *Flag) last() Release { return f.Until.OrNewest() }

// In reports whether the release has this definition of the flag.
func (f *Flag) In(r Release) bool {
	r = r.OrNewest()
	return f.first() <= r && r <= f.last()
}
