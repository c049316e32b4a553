package store

import (
	"context"
	"time"
)

// insistTimes bounds how often Insist tries: for four minutes, in which a database restarts.
const insistTimes = 12

// Insist repeats do until it succeeds, for what the store must take because nobody would ask
// for it again. failed is given each error. It reports whether do succeeded; once ctx has ended
// it does not try, since what is to be written may have been cut off.
func Insist(ctx context.Context, do func() error, failed func(error)) bool {
	for i := range insistTimes {
		if ctx.Err() != nil {
			return false
		}
		err := do()
		if err == nil || ctx.Err() != nil {
			return err == nil
		}
		failed(err)
		select {
		case <-ctx.Done():
		case <-time.After(min(time.Second<<i, 30*time.Second)):
		}
	}
	return false
}
