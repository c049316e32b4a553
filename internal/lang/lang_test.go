package lang

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCapital(t *testing.T) {
	for given, want := range map[string]string{
		"":              "",
		"it starts":     "It starts",
		"éclair":        "Éclair",
		"It starts":     "It starts",
		"8 GPUs":        "8 GPUs",
		"两个节点":          "两个节点",
		"\xff is bytes": "\xff is bytes",
	} {
		require.Equal(t, want, Capital(given))
	}
}
