package watch

import (
	"context"
	"time"
)

// Refresh makes one look at once.
func (w *Watcher) Refresh(ctx context.Context) error { return w.look(ctx) }

// Down returns since when the cluster does not answer; zero while it answers.
func (w *Watcher) Down() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.down
}
