package pickle_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/pickle"
)

var whole = pickle.Reader{Items: 1 << 20, String: 1 << 20}

// Any input ends in a value or an error.
func TestAPickleNeverHarms(t *testing.T) {
	index, err := os.ReadFile("../../slurm/checkpoint/testdata/dist/iter_0000100/.metadata")
	require.NoError(t, err)
	for n := 0; n < len(index)-1; n += 5 {
		_, err := whole.Read(bytes.NewReader(index[:n]))
		require.Error(t, err, n)
	}
	for i := 0; i < len(index); i += 3 {
		for _, b := range []byte{0, 0xff, '.', 'R', 'b', 0x8e, 'h'} {
			harmed := bytes.Clone(index)
			harmed[i] = b
			_, _ = whole.Read(bytes.NewReader(harmed)) // either; it must only come back
		}
	}
}

func TestRead(t *testing.T) {
	plain := whole
	plain.Plain = true
	few := pickle.Reader{Items: 2, String: 4}
	for _, tt := range []struct {
		name    string
		reader  pickle.Reader
		pickled string
		want    any
		refused string
	}{
		{"a call is named, and not made", whole, "\x80\x02cos\nsystem\nX\x04\x00\x00\x00echo\x85R.", &pickle.Object{Class: "os.system", Args: []any{"echo"}}, ""},
		{"a call is its first argument where values are plain", plain, "\x80\x02cos\nsystem\nX\x04\x00\x00\x00echo\x85R.", "echo", ""},
		{"protocol 0 strings are not PyTorch's", whole, "cos\nsystem\n(S'rm -rf /'\ntR.", nil, "instruction 0x53"},
		{"an object's state", plain, "\x80\x02cos\nsystem\n)\x81}b.", nil, "instruction 0x62"},
		{"a storage", plain, "\x80\x02K\x01Q.", nil, "instruction 0x51"},
		{"a string longer than memory", whole, "\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x7f", nil, "a string of"},
		{"a string over the bound", few, "\x8c\x05hello.", nil, "a string of 5 bytes"},
		{"a string at the bound", few, "\x8c\x04hell.", "hell", ""},
		{"as many as may be built", few, "NN.", nil, ""},
		{"more than may be built", few, "NNN.", nil, "more than 2 items"},
		{"numbers", plain, "J\xfe\xff\xff\xff.", int64(-2), ""},
		{"a float", plain, "G?\xf8\x00\x00\x00\x00\x00\x00.", 1.5, ""},
		{"a long number below zero", plain, "\x8a\x02\x00\xff.", int64(-256), ""},
		{"an item for a tuple", whole, ")Na.", nil, "not a pickle"},
		{"a pair for a list", whole, "]NNs.", nil, "not a pickle"},
		{"an item for a dict", whole, "}Na.", nil, "not a pickle"},
		{"an item for a number", whole, "K\x01Na.", nil, "not a pickle"},
		{"nothing on the stack", whole, ".", nil, "not a pickle"},
		{"a value that was not kept", whole, "h\x07.", nil, "not a pickle"},
		{"true as text", plain, "I01\n.", true, ""},
		{"false as text", plain, "I00\n.", false, ""},
		{"one as text", plain, "I1\n.", int64(1), ""},
		{"an ordered dict", whole, "ccollections\nOrderedDict\n)R.", &pickle.Dict{}, ""},
		{"a list from a mark", whole, "(K\x01l.", &pickle.List{Items: []any{int64(1)}}, ""},
		{"a class of a long name", whole, "c" + strings.Repeat("o", 600) + "\nsystem\n.", nil, "not a pickle"},
		{"a value that was kept", whole, "K\x05q\x070h\x07.", int64(5), ""},
	} {
		v, err := tt.reader.Read(strings.NewReader(tt.pickled))
		if tt.refused != "" {
			require.ErrorContains(t, err, tt.refused, tt.name)
			require.ErrorIs(t, err, pickle.Err, tt.name)
			continue
		}
		require.NoError(t, err, tt.name)
		require.Equal(t, tt.want, v, tt.name)
	}
	v, err := plain.Read(strings.NewReader("}(\x8c\x01aK\x01\x8c\x01aK\x02u."))
	require.NoError(t, err)
	require.Equal(t, int64(2), pickle.Attribute(v, "a"), "the later of two values of a key, as in Python")
	require.Nil(t, pickle.Attribute(v, "b"))
}
