package outbox

import (
	"context"
	"fmt"

	"github.com/slack-go/slack"
)

// Steps shows the progress of a long operation where its answer will be: a plan whose steps are
// ticked off (task_update chunks of chat.startStream, in the display mode "plan"). The returned
// function takes how many steps are done, and what the step that was just done is about. The
// answer later replaces the plan. A channel that refuses the plan gets the answer alone.
func (s *Sender) Steps(ctx context.Context, t StreamTarget, title string, steps []string) (at func(done int, about string)) {
	g := s.newStream(t)
	g.opts = []slack.MsgOption{slack.MsgOptionTaskDisplayMode(slack.TaskDisplayModePlan)}
	now, shown := make([]slack.TaskUpdateChunk, len(steps)), make([]slack.TaskUpdateChunk, len(steps))
	for i, title := range steps {
		id := g.target.Key + streamMark // a started stream is found again by this id
		if i > 0 {
			id = fmt.Sprint(g.target.Key, "/", i)
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
