package hostlist_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/slurm/hostlist"
)

func TestExpand(t *testing.T) {
	for list, want := range map[string]string{
		"":                          "",
		"(null)":                    "",
		"None assigned":             "",
		"gpu1":                      "gpu1",
		"gpu[1-3]":                  "gpu1 gpu2 gpu3",
		"gpu[08-11,20],login":       "gpu08 gpu09 gpu10 gpu11 gpu20 login",
		"r[1-2]n[01-02]":            "r1n01 r1n02 r2n01 r2n02",
		"a-b[3]":                    "a-b3",
		"[08-10]":                   "08 09 10",
		"gpu[1-2].example.org, cpu": "gpu1.example.org gpu2.example.org cpu",
	} {
		got, err := hostlist.Expand(list)
		require.NoError(t, err, list)
		require.Equal(t, want, strings.Join(got, " "), list)
	}
}

func TestExpandSaysWhatIsWrong(t *testing.T) {
	for list, want := range map[string]string{
		"gpu[1-3":           "missing ']' for the '[' at column 4",
		"gpu1-3]":           "']' without '[' at column 7",
		"gpu[1[2]]":         "'[' inside brackets at column 6",
		"a,,b":              "empty name at column 3",
		"gpu[3-1]":          `range "3-1" runs backwards`,
		"gpu[x]":            `"x" is not a number`,
		"n[0-99999999]":     "more than 10000 nodes",
		"n[0-999]m[0-9999]": "more than 10000 nodes",
	} {
		_, err := hostlist.Expand(list)
		require.ErrorContains(t, err, want, list)
	}
}

func TestCompress(t *testing.T) {
	for nodes, want := range map[string]string{
		"":                             "",
		"gpu1":                         "gpu1",
		"gpu3 gpu1 gpu2 gpu2":          "gpu[1-3]",
		"gpu09 gpu10 gpu11":            "gpu[09-11]",
		"n9 n10 n010":                  "n[9-10,010]",
		"b2 a1 login a2":               "login,a[1-2],b2",
		"n1 n01":                       "n[1,01]",
		"x99999999999999999999999 y-1": "x99999999999999999999999,y-1",
	} {
		require.Equal(t, want, hostlist.Compress(strings.Fields(nodes)), nodes)
	}
}

// Expanding a compressed set of names gives the same set.
func FuzzCompressThenExpand(f *testing.F) {
	f.Add("gpu1 gpu2 gpu010 a b-3")
	f.Add("n9 n10 n09 n010")
	f.Fuzz(func(t *testing.T, words string) {
		if strings.ContainsAny(words, "[],()") {
			t.Skip("brackets and commas are no part of a node name")
		}
		want := map[string]bool{}
		for _, w := range strings.Fields(words) {
			want[w] = true
		}
		got, err := hostlist.Expand(hostlist.Compress(strings.Fields(words)))
		require.NoError(t, err)
		require.Len(t, got, len(want))
		for _, n := range got {
			require.True(t, want[n], n)
		}
	})
}

func ExampleCompress() {
	nodes, _ := hostlist.Expand("gpu[01-03],gpu07")
	fmt.Println(nodes, hostlist.Compress(nodes))
	// Output: [gpu01 gpu02 gpu03 gpu07] gpu[01-03,07]
}
