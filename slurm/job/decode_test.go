package job_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

func TestYAMLAndJSONGiveTheSameSpecification(t *testing.T) {
	fromYAML, err := job.Decode([]byte(`
# a comment
name: gpt
nodes: 2
gpus_per_node: 0
time: 90
array: 5
exclude: [gpu1, gpu2]
args:
  - --lr
  - 3e-4
  - 010
  - "8"
  - true
  - |
    two
    lines
env: {A: 1, B: "", C: 'é😀'}
container: {runtime: pyxis, mounts: /data}
retry: {max: 0}
guards: false
preset:
`))
	require.NoError(t, err)
	fromJSON, err := job.Decode([]byte(`{"name":"gpt","nodes":2,"gpus_per_node":0,"time":"90","array":"5","exclude":"gpu1,gpu2",
		"args":["--lr","3e-4","010",8,true,"two\nlines\n"],"env":{"A":"1","B":"","C":"\u00e9\ud83d\ude00"},
		"container":{"runtime":"pyxis","mounts":["/data"]},"retry":{"max":0},"guards":false}`))
	require.NoError(t, err)
	require.Equal(t, fromJSON, fromYAML)
	require.Equal(t, []string{"--lr", "3e-4", "010", "8", "true", "two\nlines\n"}, fromYAML.Args)
	require.Equal(t, 0, *fromYAML.GPUsPerNode)
	require.False(t, *fromYAML.Guards)
	require.Nil(t, fromYAML.Monitor)
	require.Equal(t, job.Hash(fromJSON), job.Hash(fromYAML))
}

func TestDecodeNamesTheFieldAndWhatWouldWork(t *testing.T) {
	for text, says := range map[string]string{
		"nodes: many":                    `nodes: "many" is not a whole number; write a number such as 8`,
		"nodes: 2.5":                     `nodes: "2.5" is not a whole number`,
		"nodes: [2]":                     "nodes: is not a whole number",
		"gpus-per-node: 8":               "gpus-per-node: is not a field of the job specification; did you mean gpus_per_node?",
		"gpus: 8":                        "did you mean gpus_per_node?",
		"partiton: prod":                 "did you mean partition?",
		"container: {imgae: x}":          "container.imgae: is not a field of the job specification; did you mean container.image?",
		"container: x":                   "container: \"x\" is text; write a map of runtime, image",
		"args: --lr 1":                   "args: \"--lr 1\" is text; write a list, one element each",
		"args: [[1]]":                    "args: is a list; write one value",
		"env: [A=1]":                     "env: is a list; write a map of NAME: value",
		"env: {A: {B: 1}}":               "env.A: is a map",
		"exclusive: 3":                   "exclusive: \"3\" is a number; write true or false",
		"account: ''":                    "account: is empty; leave it out, or give a value",
		"name: x\nnodes:\n":              "nodes: is empty (line 2); leave it out, or give a value",
		"exclusive: # yes\n":             "exclusive: is empty; leave it out, or give a value",
		"name: a\nname: b":               "name: is given twice",
		`{"name":"a","name":"b"}`:        "name: is given twice",
		"a: &x 1\nb: *x":                 "anchors, aliases and tags",
		"name: !!binary aGk=":            "anchors, aliases and tags",
		"- a":                            "spec: is a list; write name: value lines",
		"name: a\n---\nname: b":          "more than one document",
		"name: \"a":                      "not YAML",
		strings.Repeat("[", 1000):        "nested too deep",
		strings.Repeat(`{"a":`, 1000):    "nested too deep",
		"a: " + strings.Repeat("x", 3e5): "more than a specification may have",
		"env: {A: " + strings.Repeat("[", 17) + strings.Repeat("]", 17) + "}": "nested too deep",
	} {
		_, err := job.Decode([]byte(text))
		require.ErrorContains(t, err, says, text[:min(len(text), 80)])
		require.NotEmpty(t, job.AsFieldErrors(err))
	}
}

// The parser's words are English: a Chinese reader is told the place and that these are
// the parser's.
func TestTextThatIsNotYAMLIsToldInBothLanguages(t *testing.T) {
	for text, want := range map[string][2]string{
		"nodes: 1\nargs: [--lr\n": {
			"is not YAML near \"[\": sequence end token ']' not found (line 2)",
			"\"[\" 附近不符合 YAML 语法，解析器的原文：sequence end token ']' not found（第 2 行）",
		},
		"name: \"a\nnodes: 2\n": {
			"is not YAML near \"\\\"a\": could not find end character of double-quoted text (line 1)",
			"\"\\\"a\" 附近不符合 YAML 语法，解析器的原文：could not find end character of double-quoted text（第 1 行）",
		},
	} {
		_, err := job.Decode([]byte(text))
		for l, says := range map[lang.Lang]string{lang.EN: want[0], lang.ZH: want[1]} {
			msg, _ := job.AsFieldErrors(err)[0].In(l)
			require.Equal(t, says, msg)
		}
	}
}

func TestScalarsStayAsTheyAreWritten(t *testing.T) {
	words := []string{"0x1F", "0b1", "0o17", "017", "1_000", "+5", "-7", ".5", "1.", "1e-5", "1E5", ".inf", "yes", "No", "TRUE", "2030-01-20", "1:30:00", "a b", "é", "--x=#y", "-"}
	text := "worktree: /w\r\nargs:\r\n"
	for _, w := range words[:len(words)-1] {
		text += "  - " + w + "\r\n"
	}
	spec, err := job.Decode([]byte("\ufeff" + text + "  - '-'\r\n"))
	require.NoError(t, err)
	require.Equal(t, words, spec.Args)
}

func TestTextThatIsNoTextIsRefused(t *testing.T) {
	for _, text := range []string{"name: \xff", `{"name": "\ud800"}`, "{\"name\": \"\xc3\"}", "name: \"\\ud800\""} {
		spec, err := job.Decode([]byte(text))
		if err == nil {
			require.NotEmpty(t, spec.Validate(), "%q: %q", text, spec.Name)
		}
	}
}

func TestDecodeReportsEveryFaultAtOnce(t *testing.T) {
	_, err := job.Decode([]byte("nodes: x\ntime: []\nfoo: 1"))
	require.Len(t, job.AsFieldErrors(err), 3)
	var many strings.Builder
	for i := range 4_100 {
		fmt.Fprintf(&many, "k%d: 1\n", i)
	}
	_, err = job.Decode([]byte(many.String()))
	require.ErrorContains(t, err, "has more than 4096 names")
	fewer, _, _ := strings.Cut(many.String(), "k2000:")
	_, err = job.Decode([]byte(fewer))
	require.Len(t, job.AsFieldErrors(err), 21, "who has thousands wrong reads no more")
	require.ErrorContains(t, err, "\nspec: errors not listed here: 1980")
	few, _, _ := strings.Cut(many.String(), "k21:")
	_, err = job.Decode([]byte("time: soon\n" + few))
	require.ErrorContains(t, err, "\nspec: errors not listed here: 2", "one of these, and the time that cannot be read")
}

func FuzzDecodeNeverPanics(f *testing.F) {
	f.Add([]byte("name: a\nargs: [1, '2']\nenv: {A: b}"))
	f.Add([]byte(`{"name": "a", "container": {"mounts": ["a:b"]}}`))
	f.Add([]byte("? a\n: b\n- c"))
	f.Add([]byte("args: |-\n  x\n\ty"))
	f.Fuzz(func(t *testing.T, data []byte) {
		spec, err := job.Decode(data)
		if err != nil {
			require.NotEmpty(t, job.AsFieldErrors(err))
			return
		}
		spec.Validate()
	})
}

// Decode reads JSON with the YAML parser, and gets the same values as encoding/json.
func FuzzJSONIsReadAsItIsMeant(f *testing.F) {
	for _, s := range append([]string{"\x00", "a\u2028b", "\"\\/'#: -&*!%@`{}[],?|>~", "null", "1e5", "0x1F"}, hostile...) {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, word, name string) {
		word, name = strings.ToValidUTF8(word, ""), strings.ToValidUTF8(name, "")
		if strings.ContainsRune(word+name, '\ufffd') || name == "" {
			return // no text
		}
		for _, escape := range []bool{true, false} {
			var b bytes.Buffer
			enc := json.NewEncoder(&b)
			enc.SetEscapeHTML(escape)
			require.NoError(t, enc.Encode(map[string]any{"args": []string{word, name}, "env": map[string]string{name: word}}))
			text := b.Bytes()
			if escape {
				text = escaped(b.String())
			}
			spec, err := job.Decode(text)
			require.NoError(t, err, "%s", text)
			require.Equal(t, job.Spec{Args: []string{word, name}, Env: map[string]string{name: word}}, spec, "%s", text)
		}
	})
}

// escaped returns JSON with every character beyond ASCII as \u and four digits, which is
// how other languages write it.
func escaped(text string) []byte {
	var b []byte
	for _, r := range text {
		if r < 0x80 {
			b = append(b, byte(r))
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			b = fmt.Appendf(b, `\u%04x`, unit)
		}
	}
	return b
}

func TestAFaultNamesItsFileAndLine(t *testing.T) {
	text := []byte("name: a\nworktree: /w\n\nnodes: many\nenv:\n  A: b\n  A b: c\ncontainer:\n  runtime: docker\n  image: x\n  mounts:\n    - /a:/b\n    - c:/d\ntme: 5\n")
	_, err := job.Decode(text)
	require.EqualError(t, job.Locate(err, "job.yaml", text),
		`nodes: "many" is not a whole number (job.yaml, line 4); write a number such as 8`+"\n"+
			`tme: is not a field of the job specification (job.yaml, line 14); did you mean time?`+"\n"+
			`container.mounts: "c:/d" is not absolute (job.yaml, line 13); give host:inside or host:inside:flags, both absolute`+"\n"+
			`env: "A b" is not a variable's name (job.yaml, line 5); give letters, digits and '_', not starting with a digit`)
	text = bytes.ReplaceAll(bytes.ReplaceAll(text, []byte("many"), []byte("0")), []byte("tme: 5"), []byte("time: soon"))
	spec, err := job.Decode(text)
	require.NoError(t, err)
	lines := map[string]int{}
	for _, e := range job.AsFieldErrors(job.Locate(job.FieldErrors(spec.Validate()), "", text)) {
		lines[e.Field] = e.Line
		require.Empty(t, e.File)
	}
	require.Equal(t, map[string]int{"nodes": 4, "env": 5, "container.mounts": 13, "time": 14}, lines)
	spec.Time = "25h"
	for _, e := range job.AsFieldErrors(job.Locate(job.FieldErrors(spec.Validate()), "job.yaml", text)) {
		require.Equal(t, e.Field != "time", e.File != "", "the file's line is not where a flag's value stands")
	}
	_, err = job.Decode([]byte(`{"nodes": "x"}`))
	require.EqualError(t, err, `nodes: "x" is not a whole number; write a number such as 8`, "one line needs no number")
	msg, _ := job.AsFieldErrors(job.Locate(err, "a.yaml", []byte("name: a\nnodes: x")))[0].In(lang.ZH)
	require.Equal(t, "不是整数（a.yaml 第 2 行）", msg)
}
