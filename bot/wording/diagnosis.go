// Package wording puts results of operations into words for a chat, where these differ from the
// shell's: a diagnosis starts with its cause, log lines follow their rank, and Slurm's
// abbreviations are spelled out.
package wording

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/internal/ops/joblogs"
	"github.com/megatron-ops/megatron-ops/internal/ops/launch"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
)

var (
	textWhyRank     = lang.Text{EN: "%s, rank %d on %s", ZH: "%s，%[3]s 上的 rank %[2]d"}
	textWhyRankOnly = lang.Text{EN: "%s, rank %d", ZH: "%s，rank %d"}
	textWhyNode     = lang.Text{EN: "%s, on %s", ZH: "%s，节点 %s"}
	textSeen        = lang.Text{EN: "Seen in the log", ZH: "日志依据"}
	textMore        = lang.Text{EN: "Class, who acts, retry", ZH: "类别、处理人、是否重试"}
)

// Why says in a few words what went wrong and where; it is empty where nothing did.
func Why(r report.Report, l lang.Lang) string {
	if r.Class == outcome.Success || r.Class == outcome.Running {
		return ""
	}
	name := ClassName(r.Class, l)
	switch {
	case r.RootRank != nil && r.RootNode != nil && *r.RootNode != "":
		return fmt.Sprintf(textWhyRank.In(l), name, *r.RootRank, *r.RootNode)
	case r.RootRank != nil:
		return fmt.Sprintf(textWhyRankOnly.In(l), name, *r.RootRank)
	case r.RootNode != nil && *r.RootNode != "":
		return fmt.Sprintf(textWhyNode.In(l), name, *r.RootNode)
	}
	return name
}

// ClassName returns the name of a failure class, or its id where it has no name.
func ClassName(class string, l lang.Lang) string {
	for _, c := range outcome.Classes() {
		if c.ID == class {
			return c.Name.In(l)
		}
	}
	return class
}

// evidenceLines is how many log lines a diagnosis shows.
const evidenceLines = 4

// Diagnosis draws a diagnosis for a chat: the cause and its place, the lines that show it, and
// what to do. Details that fewer people need are folded.
func Diagnosis(d joblogs.DiagnoseOut, l lang.Lang) view.Doc {
	full := d.View(l)
	doc := view.Doc{Title: full.Title, Tone: full.Tone, Next: full.Next}
	why := Why(d.Report, l)
	if why != "" {
		doc.Title = lang.Capital(why)
	}
	full.Sections = changeOnce(full.Sections, d.Fix)
	var folded []view.Section
	for i, s := range full.Sections {
		switch {
		case i == 0 && s.Text != "":
			if why != "" {
				s.Text = withoutTitle(s.Text, d.Class, l)
			}
			if s.Text != "" {
				doc.Sections = append(doc.Sections, s)
			}
			if lines := evidence(d.Report, l); lines != "" {
				doc.Sections = append(doc.Sections, view.Section{Heading: textSeen.In(l), Code: lines, Lang: "log"})
			}
		case len(s.Facts) > 0:
			s.Heading, s.Fold = textMore.In(l), true
			folded = append(folded, s)
		case s.Code != "" && s.Code == d.RootLine, s.Table != nil:
			// The evidence above shows these lines already.
		case s.Fold:
			folded = append(folded, s)
		default:
			doc.Sections = append(doc.Sections, s)
		}
	}
	doc.Sections = append(doc.Sections, folded...)
	return doc
}

// changeOnce removes from the advice the changes that a button makes. They have a section of
// their own, with the values that the plan has accepted.
func changeOnce(sections []view.Section, fix *launch.SpecPatch) []view.Section {
	if fix == nil {
		return sections
	}
	var flags []string
	for _, change := range fix.Changes {
		flag, _, _ := strings.Cut(change, ":")
		flag, _, _ = strings.Cut(flag, "：")
		flags = append(flags, strings.TrimSpace(flag))
	}
	sections = slices.Clone(sections)
	for i, s := range sections {
		if slices.Equal(s.Items, fix.Changes) {
			continue
		}
		sections[i].Items = slices.DeleteFunc(slices.Clone(s.Items), func(item string) bool {
			return slices.ContainsFunc(flags, func(f string) bool { return f != "" && strings.Contains(item, f) })
		})
	}
	return slices.DeleteFunc(sections, func(s view.Section) bool {
		return s.Heading != "" && s.Text == "" && len(s.Items)+len(s.Facts) == 0 && s.Code == "" && s.Table == nil
	})
}

// withoutTitle removes the first sentence of text where it only repeats the title, that is the
// class and its place.
func withoutTitle(text, class string, l lang.Lang) string {
	end := map[bool]string{true: "。", false: ". "}[l == lang.ZH]
	first, rest, _ := strings.Cut(text, end)
	name := ClassName(class, l)
	if !strings.Contains(strings.ToLower(first), strings.ToLower(name)) || strings.Count(first, "") > strings.Count(name, "")+40 {
		return text
	}
	return strings.TrimSpace(rest)
}

// rankMark matches the prefix by which torchrun marks a line's rank.
var rankMark = lazy.New(`^\[(?:default|rank)?(\d+)\]: ?`)

// withoutRankMark removes the mark of a line's rank where the rank is shown anyway.
func withoutRankMark(text string, rank *int) string {
	if m := rankMark.FindStringSubmatch(text); m != nil && rank != nil && m[1] == strconv.Itoa(*rank) {
		return text[len(m[0]):]
	}
	return text
}

// evidence returns the root cause's line and the lines that support it, each with its place,
// and without repetitions.
func evidence(r report.Report, l lang.Lang) string {
	var lines, seen []string
	add := func(file string, no int, rank *int, text string) {
		text = shortIteration(strings.TrimSpace(text), l)
		if text == "" || len(lines) == evidenceLines || slices.Contains(seen, text) {
			return
		}
		seen = append(seen, text)
		place := fmt.Sprintf("%s:%d", file, no)
		if rank != nil {
			place = fmt.Sprintf("rank %d · %s", *rank, place)
		}
		lines = append(lines, place+" │ "+withoutRankMark(text, rank))
	}
	if r.RootLineNo != nil {
		add(r.RootFile, *r.RootLineNo, r.RootRank, r.RootLine)
	}
	for _, e := range r.Evidence {
		add(e.File, e.LineNo, e.Rank, e.Text)
	}
	return strings.Join(lines, "\n")
}
