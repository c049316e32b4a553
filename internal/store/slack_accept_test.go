package store

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestManyRequestsAtOnceAreEachAcceptedOnce(t *testing.T) {
	onEach(t, func(t *testing.T, s *Slack) {
		var fresh atomic.Int32
		var wg sync.WaitGroup
		for i := range 200 {
			wg.Go(func() {
				is, err := s.Accept(t.Context(), SlackRequest{Key: fmt.Sprint(i % 100), Body: "{}", At: time.Now()})
				if err != nil {
					t.Error(err)
				}
				if is {
					fresh.Add(1)
				}
			})
		}
		wg.Wait()
		require.Equal(t, int32(100), fresh.Load())
		list, err := s.Unfinished(t.Context(), 1000)
		require.NoError(t, err)
		require.Len(t, list, 100)
	})
}

func TestOneRequestThatCannotBeStoredFailsAlone(t *testing.T) {
	onEach(t, func(t *testing.T, s *Slack) {
		if !s.postgres {
			_, err := s.exec(t.Context(), `CREATE TRIGGER no_nul BEFORE INSERT ON slack_inbox WHEN instr(NEW.body, char(0)) > 0 BEGIN SELECT RAISE(ABORT, 'no'); END`)
			require.NoError(t, err) // as PostgreSQL has it
		}
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				body := "{}"
				if i == 7 {
					body = "\x00"
				}
				is, err := s.Accept(t.Context(), SlackRequest{Key: fmt.Sprint(i), Body: body, At: time.Now()})
				if (err != nil) != (i == 7) || is == (i == 7) {
					t.Errorf("request %d: %v %v", i, is, err)
				}
			})
		}
		wg.Wait()
	})
}

func TestWhoGivesUpWaitingTakesNobodyAlong(t *testing.T) {
	onEach(t, func(t *testing.T, s *Slack) {
		gone, leave := context.WithCancel(t.Context())
		leave()
		_, err := s.Accept(gone, SlackRequest{Key: "a", Body: "{}", At: time.Now()})
		if err != nil {
			require.ErrorIs(t, err, context.Canceled)
		}
		_, err = s.Accept(t.Context(), SlackRequest{Key: "b", Body: "{}", At: time.Now()})
		require.NoError(t, err)
	})
}
