package report_test

import (
	"maps"
	"regexp"
	"testing"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/diagnosetest"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
	"github.com/stretchr/testify/require"
)

// proseOf returns a document's own sentences, without lines of logs and code.
func proseOf(d view.Doc) []string {
	all := []string{d.Title}
	for _, s := range d.Sections {
		all = append(append(all, s.Heading, s.Text), s.Items...)
		for _, f := range s.Facts {
			all = append(all, f.Name, f.Value)
		}
		if s.Table != nil {
			all = append(all, s.Table.Header...)
			for _, row := range s.Table.Rows {
				all = append(all, row[0])
			}
		}
	}
	return all
}

var (
	quoted  = regexp.MustCompile("`[^`]*`")
	english = regexp.MustCompile(`[A-Za-z][a-z']+(?: [a-z']+){2,}`)
)

// Chinese documents contain no English sentence, for the labelled cases and every kind of report.
func TestChineseAnswersAreInChinese(t *testing.T) {
	reports := maps.Clone(diagnosetest.Reports(t))
	for _, s := range shown {
		reports[s.name] = s.r
	}
	for name, r := range reports {
		for _, text := range proseOf(r.View(lang.ZH)) {
			require.Empty(t, english.FindString(quoted.ReplaceAllString(text, "")), "%s says: %s", name, text)
		}
	}
}

// Each command occurs in only one remedy.
func TestACommandIsAdvisedOnce(t *testing.T) {
	reports := maps.Clone(diagnosetest.Reports(t))
	reports["no such module"] = report.Report{Class: "import_error", ImportKind: report.NoSync, RootLine: "No module named 'einops'"}
	for name, r := range reports {
		r.Finish()
		seen := map[string]bool{}
		for _, remedy := range r.Advice {
			for _, command := range quoted.FindAllString(remedy, -1) {
				require.False(t, seen[command], "%s advises %s twice: %q", name, command, r.Advice)
				seen[command] = true
			}
		}
	}
}
