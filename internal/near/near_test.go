package near

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDistance(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{
		{"", "", 0},
		{"nodes", "nodes", 0},
		{"nodez", "nodes", 1},
		{"sumbit", "submit", 1}, // two letters that changed places
		{"stat", "status", 2},
		{"提交", "提教", 1},
		{"", "abc", 3},
	} {
		require.Equal(t, tt.want, Distance(tt.a, tt.b), "%q %q", tt.a, tt.b)
		require.Equal(t, tt.want, Distance(tt.b, tt.a), "%q %q", tt.b, tt.a)
	}
}

func TestWord(t *testing.T) {
	require.Equal(t, "submit", Word("sumbit", []string{"status", "submit"}, 3))
	require.Empty(t, Word("frobnicate", []string{"status", "submit"}, 3))
}
