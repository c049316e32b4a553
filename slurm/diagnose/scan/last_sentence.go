package scan

import (
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/pattern"
)

// sentences keeps a file's last statement, tracebacks and launchers' words apart. A sentence that no logger wrote stays
// once a launcher has reported a failure after it: in standard error, it may be the one with which sys.exit ended a process.
func (s *scanner) sentences(m Mark, text string) {
	switch {
	case s.said.Text != "" && s.Failed != nil && s.Failed.Off > s.said.Off && isSentence(s.saidText), pattern.AgentLine(text), strings.Contains(text, " closing signal "),
		strings.Contains(text, exitWarning): // it follows the sentence
	default:
		s.said, s.saidText = m, text
	}
}

// isSentence reports whether a line is a sentence without a logger's head, and none that announces, warns or reports
// success.
func isSentence(text string) bool {
	_, dated := logline.ParseTime(text)
	return !dated && plainWords.MatchString(text) && pattern.FormOf(text) < pattern.Report && !announces(text) && !ErrorLevel.MatchString(text) &&
		(!doneWords.MatchString(text) || failed.MatchString(text)) && !strings.HasSuffix(text, ":") && !strings.Contains(text, " NCCL ")
}

// plainWords matches a line that begins with two words of a sentence, maybe after the name of the program.
var plainWords = lazy.New(`^(?:[A-Za-z][\w.-]*: )?[A-Za-z][\w'.-]*,? [\w'"/.-]+,? `)

// SaidOnce reports whether a line is such a sentence, and no other line of the file has its form.
func (f *Facts) SaidOnce(t logline.Tag, text string) bool {
	return isSentence(text) && f.rows[form32(t, text)].times <= 1
}

// LastSentence returns a file's last statement if it is such a sentence and no other process wrote the same; else nil.
func (f *Facts) LastSentence() *Mark {
	if _, text := logline.CutTag(f.said.Text); f.said.Text == "" || !isSentence(f.saidText) || !f.SaidOnce(f.said.Tag, text) {
		return nil
	}
	return &f.said
}
