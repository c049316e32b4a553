package knowledge

import (
	"slices"
	"strings"
	"unicode"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/knowledge/index"
	"github.com/megatron-ops/megatron-ops/knowledge/names"
)

var (
	variablePattern = lazy.New(`\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b`)
	pastedMessage   = lazy.New(`(?i)unrecogni[sz]ed|not (?:accepted|recogni[sz]ed|known)|不认|error|traceback|not found|no such option|invalid|exception|warn|timeout`)
)

// unknownNames returns the options and variables of a question where no tool has any of
// them. It returns none for a pasted message.
func unknownNames(text string) []string {
	if pastedMessage.MatchString(text) {
		return nil
	}
	var all []string
	for _, m := range optionPattern.FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	variables := variablePattern.FindAllString(text, -1)
	if slices.ContainsFunc(all, names.Option) || slices.ContainsFunc(variables, names.Variable) {
		return nil
	}
	return append(all, variables...)
}

var (
	textUnknownName = lang.Text{EN: "I do not know `%s`: none of the documents that I have names it.", ZH: "不知道 `%s`：已有的文档都没有提到它。"}
	textReadAs      = lang.Text{EN: "I do not know `%s`; this is about `%s`.", ZH: "不知道 `%s`；以下是 `%s` 的内容。"}
	textDidYouMean  = lang.Text{EN: "I do not know `%s`. Did you mean %s?", ZH: "不知道 `%s`。是不是 %s？"}
	textOr          = lang.Text{EN: " or ", ZH: " 或 "}
)

// A misspelling is an unknown name of a question and the existing names that may be meant.
type misspelling struct {
	name  string
	meant []string
}

// respelt returns the unknown names of a question, and the question with each of them
// replaced where only one other name may be meant.
func respelt(text string) (unknown []misspelling, corrected string) {
	corrected = text
	for _, name := range unknownNames(text) {
		m := misspelling{name, names.Near(name)}
		if slices.ContainsFunc(unknown, func(o misspelling) bool { return o.name == name }) {
			continue
		}
		unknown = append(unknown, m)
		if len(m.meant) == 1 {
			corrected = strings.ReplaceAll(corrected, name, m.meant[0])
		}
	}
	return unknown, corrected
}

// hint says which names of a question are unknown. Above an answer it names those alone
// that were read as another name; without an answer it says of each what may be meant.
func hint(unknown []misspelling, answered bool, l lang.Lang) string {
	var hints []string
	for _, m := range unknown[:min(len(unknown), maxShown)] {
		switch {
		case answered && len(m.meant) == 1:
			hints = append(hints, textReadAs.With(m.name, m.meant[0]).In(l))
		case answered:
		case len(m.meant) == 0:
			hints = append(hints, textUnknownName.With(m.name).In(l))
		default:
			meant := m.meant[:min(len(m.meant), maxShown)]
			hints = append(hints, textDidYouMean.With(m.name, "`"+strings.Join(meant, "`"+textOr.In(l)+"`")+"`").In(l))
		}
	}
	return strings.Join(hints, " ")
}

var (
	// settingPattern matches words of several parts written as one, such as MaxArraySize:
	// Slurm's settings, fields and reasons, but also products.
	settingPattern = lazy.New(`\b[A-Za-z]+[a-z0-9][A-Z][A-Za-z0-9]*\b`)
	// aboutSlurm matches questions in which such a word is a name of Slurm: beside "slurm"
	// alone it may be a product (OpenMPI, DeepSpeed).
	aboutSlurm = lazy.New(`(?i)\bslurm\.conf\b|\bsacct|\bsstat\b|\bsqueue\b|\bscontrol\b|\bsinfo\b|\bpending\b|\bpd\b|排队`)
)

// asksName is the number of terms that a question about names has at most besides them.
const asksName = 4

// namesIn returns the names in a question, as joined returns them, and the rest of it.
// Beside a setting or a field, an option only says where that is shown.
func namesIn(question string) (asked []string, rest string) {
	var options, settings []string
	for _, m := range optionPattern.FindAllStringSubmatch(question, -1) {
		options = append(options, m[1])
	}
	options = append(options, variablePattern.FindAllString(question, -1)...)
	if aboutSlurm.MatchString(question) {
		settings = settingPattern.FindAllString(question, -1)
	}
	rest = question
	for _, name := range slices.Concat(options, settings) {
		rest = strings.Replace(rest, name, " ", 1)
	}
	asked = options
	if len(settings) > 0 {
		asked = settings
	}
	for i, name := range asked {
		asked[i] = joined(name)
	}
	return asked, rest
}

// onlyNames reports whether a question asks for names and hardly says more.
func onlyNames(question string) bool {
	asked, rest := namesIn(question)
	return len(asked) > 0 && len(index.Terms(rest)) <= asksName
}

// aboutNames returns the passages for a question about names: options, variables and
// settings such as MaxArraySize. They are near itself where one of the passages to be
// shown has a name, else those of near that have one, or none, because the meaning of
// another name is no answer. It returns near for any other question, and for a pasted
// message.
func aboutNames(question string, near []Passage) []Passage {
	asked, _ := namesIn(question)
	if !onlyNames(question) || pastedMessage.MatchString(question) {
		return near
	}
	var with []Passage
	for i, p := range near {
		text := joined(p.Title + " " + p.Text)
		if p.local || slices.ContainsFunc(asked, func(name string) bool { return strings.Contains(text, name) }) {
			if i < maxShown {
				return near
			}
			with = append(with, p)
		}
	}
	return with
}

// joined returns the letters and digits of a text in lower case, so that one spelling of
// a name is found in another.
func joined(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, text)
}
