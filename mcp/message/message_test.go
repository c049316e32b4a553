package message_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/mcp/message"
)

func TestArgumentsTravelBesideTheirMessage(t *testing.T) {
	for _, c := range []struct{ message, rest, arguments string }{
		{
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"plan","arguments":{"spec":{"args":["}"]}}}}`,
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"plan","arguments":{}}}`, `{"spec":{"args":["}"]}}`,
		},
		{
			"{ \"params\" : { \"arguments\" : {\"a\\\"\":1} ,\n\"_meta\":{\"x\":[1]} } , \"method\":\"tools/call\" }",
			"{ \"params\" : { \"arguments\" : {} ,\n\"_meta\":{\"x\":[1]} } , \"method\":\"tools/call\" }", `{"a\"":1}`,
		},
		// A message that a lenient decoder would read differently stays unchanged.
		{message: `{"method":"tools/call","params":{"arguments":{},"Arguments":{"a":1}}}`},
		{message: `{"method":"tools/call","params":{"arguments":{},"arguments":{"a":1}}}`},
		{message: `{"method":"tools/call","params":{"argument\u0073":{"a":1}}}`},
		{message: `{"method":"tools/call","params":{"arguments":{},"argument\u0073":{"a":1}}}`},
		{message: `{"method":"tools/call","params":{"arguments":{"a":1},"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"arguments":{}}}`},
		{message: `{"method":"tools/call","params":{"arguments":{"a":1}},"PARAMS":{}}`},
		{message: `{"method":"tools/call","params":{"argumentſ":{"a":1},"arguments":{}}}`},
		{message: `{"method":"tools/call","params":{"arguments":[1]}}`},
		{message: `{"method":"tools/call","params":{"arguments":null}}`},
		{message: `{"method":"tools/call","params":{"arguments":{"a":}}}`},
		{message: `{"method":"tools/call","params":{"arguments":{"a":1}`},
		{message: `{"id":1,"params":{"arguments":{"a":1}}}`},
		{message: `{"method":"prompts/get","params":{"arguments":{"a":"1"}}}`},
		{message: `[{"method":"tools/call","params":{"arguments":{}}}]`},
		{message: `{"method":"tools/call","params":{"name":"list"}}`},
		{message: `{"method":`},
		{message: `{"`},
		{message: `{`},
		{message: ``},
		{message: `{"a"`},
		{message: `{"a":`},
		{message: `"`},
	} {
		rest, arguments := message.TakeArguments([]byte(c.message))
		if c.rest == "" {
			c.rest = c.message
		}
		require.Equal(t, c.rest, string(rest))
		require.Equal(t, c.arguments, string(arguments), c.message)
	}
}

// For any input, the library judges the rest as it would have judged the whole message.
func FuzzAside(f *testing.F) {
	f.Add(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"plan","arguments":{"spec":{"args":["}\\"]}}}}`)
	f.Add(`{"method":"tools/call","params":{"arguments":{"a":[1,{"b":null}]} x}}`)
	f.Add(`{"x":]}{,"method":"tools/call","params":{"arguments":{}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		rest, arguments := message.TakeArguments([]byte(text))
		if arguments == nil {
			require.Equal(t, text, string(rest))
			return
		}
		require.Equal(t, json.Valid([]byte(text)), json.Valid(rest))
		type call struct {
			Method string `json:"method"`
			Params struct {
				Arguments json.RawMessage `json:"arguments"`
			} `json:"params"`
		}
		var whole, without call
		if json.Unmarshal([]byte(text), &whole) != nil {
			return
		}
		require.NoError(t, json.Unmarshal(rest, &without))
		require.Equal(t, string(whole.Params.Arguments), string(arguments))
		require.Equal(t, whole.Method, without.Method)
		require.JSONEq(t, "{}", string(without.Params.Arguments))
	})
}

func TestAnAnswersIdIsFound(t *testing.T) {
	for text, id := range map[string]string{
		`{"jsonrpc":"2.0","id":7,"result":{"id":8}}` + "\n":          `7`,
		`{"jsonrpc":"2.0","id":"a","error":{"code":1}}`:              `"a"`,
		`{"jsonrpc":"2.0","method":"notifications/x","params":{}}`:   ``,
		`{"jsonrpc":"2.0","id":3,"method":"ping","params":{"id":1}}`: ``,
		`{"jsonrpc":"2.0","method":"ping","id":3}`:                   ``,
		`{"jsonrpc":"2.0","id":9,"result":{},"method":"x"}`:          `9`,
		`[]`: ``, ``: ``,
	} {
		require.Equal(t, id, message.IDOf([]byte(text)), text)
	}
}

func TestNoMessageNestsDeep(t *testing.T) {
	lists := func(n int) string { return strings.Repeat("[", n) }
	for text, deep := range map[string]bool{
		lists(64): false, lists(65): true, strings.Repeat(`{"a":`, 65): true, strings.Repeat("[]{}", 65): false,
		`"` + lists(65) + `"`: false, `"\"` + lists(65) + `"`: false, `"\\"` + lists(65): true, `"a",` + lists(65): true,
	} {
		require.Equal(t, deep, message.TooDeep([]byte(text)), text)
	}
}
