package ops

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

type shape struct {
	Job   string            `json:"job" arg:"" help:"job id"`
	Tail  int               `json:"tail" default:"50" help:"how many lines"`
	Mode  string            `json:"mode,omitempty" enum:"fast,slow" default:"fast"`
	Args  []string          `json:"args,omitempty"`
	Env   map[string]string `json:"env,omitempty"`
	Spec  inner             `json:"spec"`
	Limit *int              `json:"limit"`
	When  time.Time         `json:"when"`
	Any   any               `json:"any,omitempty"`
	inner2
	Hidden string `json:"-"`
}

type inner struct {
	Nodes int     `json:"nodes"`
	Ratio float64 `json:"ratio"`
}

type inner2 struct {
	Flat bool `json:"flat"`
}

func TestSchemaOfAnInputIsClosedAndInTheStructsOrder(t *testing.T) {
	raw, err := schemaOf(reflect.TypeFor[shape](), input).MarshalJSON()
	require.NoError(t, err)
	require.JSONEq(t, `{"type":"object","properties":{
		"job":{"type":"string","description":"job id"},
		"tail":{"type":"integer","description":"how many lines","default":50},
		"mode":{"type":"string","enum":["fast","slow"],"default":"fast"},
		"args":{"type":"array","items":{"type":"string"}},
		"env":{"type":"object","additionalProperties":{"type":"string"}},
		"spec":{"type":"object","properties":{"nodes":{"type":"integer"},"ratio":{"type":"number"}},"additionalProperties":false},
		"limit":{"type":"integer"},"when":{"type":"string","format":"date-time"},"any":{},"flat":{"type":"boolean"}},
		"required":["job"],"additionalProperties":false}`, string(raw))
	require.Less(t, strings.Index(string(raw), `"job"`), strings.Index(string(raw), `"tail"`))
}

func TestSchemaOfAnOutputRequiresWhatIsAlwaysThere(t *testing.T) {
	s := schemaOf(reflect.TypeFor[shape](), output)
	require.Equal(t, []string{"job", "tail", "spec", "limit", "when", "flat"}, s.Required)
	require.True(t, s.Property("limit").Nullable, "a pointer may be null")
	require.False(t, s.Closed, "a later version may say more")
}

func TestDecodeFillsFieldsAndDefaults(t *testing.T) {
	var in shape
	token := ""
	err := Decode([]byte(`{"job":"4711","args":["--a","1e-05"],"spec":{"nodes":2.0,"ratio":0.5},"limit":3,"flat":true,"confirm":"t"}`),
		&in, map[string]*string{"confirm": &token})
	require.NoError(t, err)
	three := 3
	require.Equal(t, shape{
		Job: "4711", Tail: 50, Mode: "fast", Args: []string{"--a", "1e-05"}, Spec: inner{Nodes: 2, Ratio: 0.5},
		Limit: &three, inner2: inner2{Flat: true},
	}, in)
	require.Equal(t, "t", token)
}

func TestDecodeTellsEveryMistakeWithItsField(t *testing.T) {
	for _, c := range []struct{ in, field, message, fix string }{
		{`{"jbo":"1","job":"1"}`, "jbo", "is not an argument here", "did you mean job?"},
		{`{"JOB":"1","job":"1"}`, "JOB", "is not an argument here", "did you mean job?"},
		{`{"job":"1","job":"2"}`, "job", "is given twice", ""},
		{`{}`, "job", "is missing", "give job: job id"},
		{`{"job":true}`, "job", "is true, not a string", `such as "true"`},
		{`{"job":["1"]}`, "job", "is a list, not a string", ""},
		{`{"job":"1","tail":"many"}`, "tail", `is the string "many", not a whole number`, "such as 8"},
		{`{"job":"1","tail":"` + strings.Repeat("两", 20) + `"}`, "tail", `is the string "` + strings.Repeat("两", 13) + `…", not`, ""},
		{`{"job":"1","tail":1.5}`, "tail", "is the number 1.5", ""},
		{`{"job":"1","mode":"quick"}`, "mode", `is "quick"`, "use one of fast, slow"},
		{`{"job":"1","args":["a",{}]}`, "args[1]", "is an object, not a string", ""},
		{`{"job":"1","flat":"yes"}`, "flat", "is the string \"yes\", not a boolean", ""},
		{`{"job":"1","spec":{"nodse":1}}`, "spec.nodse", "is not an argument here", "did you mean nodes?"},
		{`{"job":"1","spec":[]}`, "spec", "is a list, not an object", ""},
		{`[]`, "", "arguments are a list, not an object", ""},
		{`{"job":`, "", "not valid JSON", ""},
		{`{"job":"1"} {}`, "", "something comes after the object", ""},
		{`{"args":` + strings.Repeat("[", 80) + strings.Repeat("]", 80) + `}`, "args", "nests deeper than", ""},
		{`{"job":"1","Hidden":"x"}`, "Hidden", "is not an argument here", "known here"},
	} {
		var in shape
		err := Decode([]byte(c.in), &in, nil)
		require.Error(t, err, c.in)
		e := AsError(err)
		require.Equal(t, BadInput, e.Code, c.in)
		require.Truef(t, strings.HasPrefix(e.Field, c.field) && (c.field != "" || e.Field == ""), "%s: field %q", c.in, e.Field)
		require.Contains(t, e.Message.EN, c.message, c.in)
		require.Contains(t, e.Fix.EN, c.fix, c.in)
	}
}

func TestDecodeForgivesHowClientsWriteScalars(t *testing.T) {
	var in shape
	require.NoError(t, Decode([]byte(`{"job":4711,"tail":"20","flat":"true","args":["--lr",1e-05]}`), &in, nil))
	require.Equal(t, "4711", in.Job)
	require.Equal(t, 20, in.Tail)
	require.True(t, in.Flat)
	require.Equal(t, []string{"--lr", "1e-05"}, in.Args, "a number stays as it was written")
}

func TestDecodeTellsAllMistakesAtOnce(t *testing.T) {
	var in shape
	err := Decode([]byte(`{"tail":"x","bogus":1}`), &in, nil)
	require.Error(t, err)
	require.Len(t, AsError(err).More, 2, "tail, bogus and the missing job")
	require.ErrorContains(t, Decode([]byte(`{"job":"1","args":[]}`), &struct {
		Args []string `json:"args" arg:"" help:"words"`
		Job  string   `json:"job"`
	}{}, nil), "args: is empty")
}

// A call with thousands of wrong names is refused soon and briefly.
func TestManyMistakesAreNotAllTold(t *testing.T) {
	names := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `"a%d":1,`, i)
		}
		return b.String()
	}
	var in shape
	for _, args := range []string{`{` + names(4000) + `"job":"1"}`, `{"spec":{` + names(4000) + `"nodes":1},"job":"1"}`} {
		err := Decode([]byte(args), &in, nil)
		require.Error(t, err)
		more := AsError(err).More
		require.Len(t, more, 20, args[:40])
		require.Equal(t, "errors not listed here: 3980", more[19].Message.EN, "so that nobody believes to have mended all")
	}
	require.ErrorContains(t, Decode([]byte(`{"env":{`+names(100_000)+`"job":"1"}}`), &in, nil), "env: has more than 4096 names")
}

func FuzzDecodeAgreesWithJSON(f *testing.F) {
	for _, seed := range []string{`{}`, `{"args":["x\\n\\u00e9 é","","\\ud800"],"job":"1"}`, `{"args":["\\\\\\""],"job":1}`, ` { "args" : [ ] , "job" : "" } `} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var in shape
		if Decode([]byte(text), &in, nil) != nil {
			return
		}
		var want struct {
			Args []string `json:"args"`
		}
		if json.Unmarshal([]byte(text), &want) == nil && strings.Count(strings.ToLower(text), `"args"`) == 1 {
			require.Equal(t, want.Args, in.Args)
		}
	})
}

// An agent's list shows some properties, in the requested order, and accepts all
// others.
func TestAListingShowsSomeProperties(t *testing.T) {
	whole := &Schema{Closed: true, Required: []string{"a", "c"}, Properties: []Property{{Name: "a", Schema: &Schema{}}, {Name: "b", Schema: &Schema{}}, {Name: "c", Schema: &Schema{}}}}
	short := whole.Only("b", "a", "none")
	require.False(t, short.Closed)
	require.Equal(t, []string{"a"}, short.Required)
	require.Equal(t, []string{"b", "a"}, []string{short.Properties[0].Name, short.Properties[1].Name})
	require.Len(t, short.Properties, 2)
	require.Equal(t, []string{"a", "c"}, whole.Required, "the whole one stays")
}

// A default that the schema cannot express in the property's type is left out.
func TestADefaultIsOfItsPropertysType(t *testing.T) {
	for _, c := range []struct {
		word, typ string
		want      any
	}{
		{"5", "string", "5"},
		{"5", "integer", json.Number("5")},
		{"0.5", "number", json.Number("0.5")},
		{"true", "boolean", true},
		{"5", "boolean", nil},
		{"true", "integer", nil},
		{"5s", "integer", nil},
		{"[1]", "array", nil},
		{"", "integer", nil},
	} {
		require.Equal(t, c.want, typedDefault(c.word, c.typ), "%q as %s", c.word, c.typ)
	}
}

// A change is not made with an argument that is there but empty: it would count as left out.
func TestAChangeTakesNoEmptyArgument(t *testing.T) {
	var in struct {
		Job    string `json:"job" help:"job id"`
		Signal string `json:"signal,omitempty" help:"send this signal"`
	}
	for _, effect := range []Effect{Write, Destructive} {
		own := "x"
		err := Op{Effect: effect}.Decode([]byte(`{"job":"4711","signal":"","token":""}`), &in, map[string]*string{"token": &own})
		require.EqualError(t, err, "signal: is empty")
		require.Equal(t, "leave signal out, or give it a value: send this signal", AsError(err).Fix.EN)
		require.Equal(t, "请省略 signal，或给出值", strings.SplitN(AsError(err).Fix.ZH, "：", 2)[0])
		require.NoError(t, Op{Effect: effect}.Decode([]byte(`{"job":"4711","signal":null}`), &in, nil))
	}
	require.NoError(t, Op{Effect: Read}.Decode([]byte(`{"job":"4711","signal":""}`), &in, nil), "many clients fill in what they leave out")
}
