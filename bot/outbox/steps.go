package outbox

import (
	"context"
	"fmt"

	"github.com/slack-go/slack"
)

// Steps shows a long work where its answer will stand: a plan whose steps are ticked
// off (task_update chunks of chat.startStream, in the display mode "plan"). at says
// how many are done, and what the one under way is about. The answer takes the plan's
// place; a channel that refuses it has the answer alone.
func (s *Sender) Steps(ctx context.Context, t Talk, title string, steps []string) (at func(done int, about string)) {
	g := s.growing(t)
	g.opts = []slack.MsgOption{slack.MsgOptionTaskDisplayMode(slack.TaskDisplayModePlan)}
	now, shown := make([]slack.TaskUpdateChunk, len(steps)), make([]slack.TaskUpdateChunk, len(steps))
	for i, title := range steps {
		id := g.talk.Key + begunMark // by which it is found again
		if i > 0 {
			id = fmt.Sprint(g.talk.Key, "/", i)
		}
		now[i] = slack.NewTaskUpdateChunk(id, title)
		now[i].Status = slack.TaskCardStatusPending
	}
	g.next = func() (chunks []slack.StreamChunk, blocks int, taken func()) {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.at.TS == "" {
			chunks, blocks = append(chunks, slack.NewPlanUpdateChunk(title)), 1
		}
		var changed []int
		for i := range now {
			if now[i].Status != shown[i].Status || now[i].Output != shown[i].Output {
				chunks, changed = append(chunks, now[i]), append(changed, i)
			}
		}
		if len(changed) == 0 {
			return nil, 0, nil
		}
		is := append([]slack.TaskUpdateChunk{}, now...)
		return chunks, blocks, func() {
			for _, i := range changed {
				shown[i] = is[i]
			}
		}
	}
	return func(done int, about string) {
		g.mu.Lock()
		for i := range now {
			switch {
			case i < done:
				now[i].Status = slack.TaskCardStatusComplete
			case i == done:
				now[i].Status = slack.TaskCardStatusInProgress
			}
		}
		if done > 0 && done <= len(now) && about != "" {
			now[done-1].Output = about
		}
		g.mu.Unlock()
		g.start(ctx)
		g.more.wake()
	}
}
