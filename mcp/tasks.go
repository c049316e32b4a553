package mcp

import (
	"context"
	"sync"
	"time"

	sdkserver "github.com/mark3labs/mcp-go/server"
)

const (
	// mostTasks is how many tasks run at a time, over all clients.
	mostTasks = 256
	taskLife  = 24 * time.Hour
)

// tasks lets a call continue after its request was answered. The library passes a
// task's handler the context of the request that created the task, and that context
// ends with the request. So the handler gets a context of its own, which ends when the
// task is cancelled. The library's RequestProtocolInfo, one per request, connects a
// task's id with its handler.
type tasks struct {
	mu      sync.Mutex
	ids     map[*sdkserver.RequestProtocolInfo]string
	cancels map[string]context.CancelFunc
}

func newTasks() *tasks {
	return &tasks{ids: map[*sdkserver.RequestProtocolInfo]string{}, cancels: map[string]context.CancelFunc{}}
}

func (t *tasks) hooks() *sdkserver.TaskHooks {
	h := &sdkserver.TaskHooks{}
	h.AddOnTaskCreated(func(ctx context.Context, m sdkserver.TaskMetrics) {
		t.mu.Lock()
		defer t.mu.Unlock()
		if info := sdkserver.RequestProtocolInfoFromContext(ctx); info != nil {
			t.ids[info] = m.TaskID
		}
	})
	h.AddOnTaskCancelled(func(_ context.Context, m sdkserver.TaskMetrics) {
		t.mu.Lock()
		defer t.mu.Unlock()
		if cancel := t.cancels[m.TaskID]; cancel != nil {
			cancel()
			return
		}
		for info, id := range t.ids { // cancelled before its handler began
			if id == m.TaskID {
				t.ids[info] = ""
			}
		}
	})
	return h
}

// detach returns the context for a task's handler.
func (t *tasks) detach(ctx context.Context) (own context.Context, done func()) {
	info := sdkserver.RequestProtocolInfoFromContext(ctx)
	own, cancel := context.WithTimeout(context.WithoutCancel(ctx), taskLife)
	t.mu.Lock()
	defer t.mu.Unlock()
	id := t.ids[info]
	delete(t.ids, info)
	if id == "" {
		cancel()
		return own, func() {}
	}
	t.cancels[id] = cancel
	return own, func() {
		cancel()
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.cancels, id)
	}
}
