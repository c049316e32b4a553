package jobnews

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot/card"
)

// However long the line is, a look tells a bounded number of cards their place: those
// in front each time, the others by turns, so that each has its turn.
func TestThePlacesOfALongLineAreToldByTurns(t *testing.T) {
	line := func() (waiting []card.News) {
		for place := range 450 {
			waiting = append(waiting, card.News{Position: 450 - place})
		}
		return append(waiting, card.News{Position: -1}) // held: it stands in no line
	}
	var at rotation
	told := map[int]int{}
	for range 4 {
		look := at.next(line())
		require.Len(t, look, 2*placesTold)
		for _, n := range look {
			told[n.Position]++
		}
	}
	require.Equal(t, 4, told[1], "the first in line is told at each look")
	require.Equal(t, 4, told[placesTold])
	require.Len(t, told, 451, "each had its turn")
	require.Len(t, at.next(line()[:150]), 150, "a short line is told whole")
}
