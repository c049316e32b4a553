package ops

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFieldsAreFoundByTheirNamesInJSON(t *testing.T) {
	t.Parallel()
	type Embedded struct {
		Deep string `json:"deep"`
	}
	type part struct {
		Inner string `json:"inner"`
	}
	x := "pointed"
	type shape struct {
		Embedded
		Part   part    `json:"part"`
		Name   string  `json:"name,omitempty"`
		Count  int     `json:"count"`
		Ptr    *string `json:"ptr"`
		Nil    *string `json:"nil"`
		hidden string
	}
	v := &shape{Embedded: Embedded{Deep: "d"}, Part: part{"i"}, Name: "n", Count: 1, Ptr: &x, hidden: "h"}
	for name, want := range map[string]string{"deep": "d", "inner": "", "name": "n", "count": "", "ptr": "pointed", "nil": "", "hidden": "", "none": ""} {
		require.Equal(t, want, TextNamed(v, name), name)
	}
	require.Equal(t, "h", v.hidden)
	require.Empty(t, TextNamed((*shape)(nil), "name"))
	require.Empty(t, TextNamed("text", "name"))
	require.Empty(t, TextNamed(nil, "name"))
	require.Empty(t, TextNamed(&struct{ *Embedded }{}, "deep"), "below an embedded pointer that is nil")
}
