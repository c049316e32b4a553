package tree

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

type nested struct {
	Deep *int `json:"deep"`
}

type target struct {
	Word  string            `json:"word" join:","`
	On    bool              `json:"on"`
	Count *int              `json:"count"`
	Rate  float64           `json:"rate"`
	List  []string          `json:"list" scalar:""`
	Whole []string          `json:"whole" scalar:"whole" pairs:""`
	Plain []string          `json:"plain"`
	Env   map[string]string `json:"env"`
	nested
	Own nested `json:"own"`
}

func text(s string) Node { return Node{Kind: Text, Text: s} }

func list(of ...Node) Node { return Node{Kind: List, List: of} }

func mapOf(key string, n Node) Node { return Node{Kind: Map, Keys: []string{key}, List: []Node{n}} }

func TestANodeIsReadByTheFieldsTags(t *testing.T) {
	for _, c := range []struct {
		key            string
		n              Node
		plain, lenient string // the field, or what is wrong and where
	}{
		{"word", text("x"), "x", "x"},
		{"word", text(""), "wrong word", ""},
		{"word", list(text("a"), Node{Kind: Int, Text: "010"}), "a,010", "a,010"},
		{"word", Node{Kind: Bool, Text: "true"}, "true", "wrong word"},
		{"word", Node{}, "", ""},
		{"on", text("true"), "true", "true"},
		{"on", Node{Kind: Int, Text: "1"}, "wrong on", "wrong on"},
		{"count", Node{Kind: Real, Text: "8.0"}, "wrong count", "8"},
		{"count", text("8"), "wrong count", "8"},
		{"rate", Node{Kind: Int, Text: "2"}, "2", "2"},
		{"rate", text("0.5"), "wrong rate", "0.5"},
		{"rate", text("inf"), "wrong rate", "wrong rate"},
		{"list", text("a,b"), "[a b]", "[a b]"},
		{"whole", text("a b,c"), "[a b,c]", "[a b,c]"},
		{"whole", list(mapOf("a", text("1"))), "[a=1]", "[a=1]"},
		{"plain", text("a"), "wrong plain", "[a]"},
		{"plain", text("a b"), "wrong plain", "wrong plain"},
		{"plain", list(text(""), list()), "wrong plain", "wrong plain[1]"},
		{"env", mapOf("A", list()), "wrong env.A", "wrong env.A"},
		{"env", list(), "wrong env", "wrong env"},
		{"deep", Node{Kind: Int, Text: "3"}, "3", "3"},
		{"own", mapOf("depe", text("x")), "unknown own.depe", "unknown own.depe"},
	} {
		for _, lenient := range []bool{false, true} {
			var into target
			said, want := "", c.plain
			if lenient {
				want = c.lenient
			}
			d := Decoder{
				Wrong:   func(path string, _ Node, _ reflect.Type, _ reflect.StructTag) { said = "wrong " + path },
				Unknown: func(path, _ string, _ Node, _ reflect.Type) { said = "unknown " + path },
				Lenient: lenient, Typed: lenient,
			}
			v := reflect.ValueOf(&into).Elem()
			if d.Read("", mapOf(c.key, c.n), v, ""); said == "" {
				f := reflect.Indirect(v.FieldByIndex(fieldsOf(v.Type())[c.key].Index))
				said = fmt.Sprint(f)
			}
			require.Equal(t, want, said, "%s: %+v", c.key, c)
		}
	}
}
