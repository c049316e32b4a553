package demo

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A connection that a slow rank gave up before it tried again is no dead rank: on a
// busy machine the tutorial's job failed by it in its first iteration.
func TestAConnectionGivenUpIsNoDeadRank(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	go serveBarrier(ln, 2)
	givenUp, err := net.Dial("tcp", ln.Addr().String())
	require.NoError(t, err)
	givenUp.Close()
	ended := make(chan error)
	for range 2 {
		b, err := joinBarrier(1, 2, ln.Addr().String(), time.Minute)
		require.NoError(t, err)
		defer b.close()
		go func() { ended <- b.wait(1, 0) }()
	}
	for range 2 {
		require.NoError(t, <-ended)
	}
}
