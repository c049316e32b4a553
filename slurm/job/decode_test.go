package job_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

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
		"partiton: prod":                 "did you mean partition?",
		"container: {imgae: x}":          "container.imgae: is not a field of the job specification; did you mean container.image?",
		"container: x":                   "container: \"x\" is text; write a map of runtime, image",
		"args: --lr 1":                   "args: \"--lr 1\" is text; write a list, one element each",
		"args: [[1]]":                    "args: is a list; write one value",
		"env: [A=1]":                     "env: is a list; write a map of NAME: value",
		"env: {A: {B: 1}}":               "env.A: is a map",
		"exclusive: 3":                   "exclusive: \"3\" is a number; write true or false",
		"account: ''":                    "account: is empty; leave it out, or give a value",
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
