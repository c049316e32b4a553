package bot

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/slack-go/slack"

	"github.com/megatron-ops/megatron-ops/bot/answer"
	"github.com/megatron-ops/megatron-ops/bot/card"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/fleet"
	"github.com/megatron-ops/megatron-ops/internal/ops/launch"
	"github.com/megatron-ops/megatron-ops/internal/ops/operations"
	"github.com/megatron-ops/megatron-ops/internal/view"
)

var (
	textNeedsYou  = lang.Text{EN: "What needs you", ZH: "需要您处理"}
	textNoneNeed  = lang.Text{EN: "Nothing: no job of yours that is followed here has failed without somebody who looks after it, and no request waits for you.", ZH: "没有：在这里关注的作业中没有您无人处理的失败，也没有等待您审批的请求。"}
	textRequests  = lang.Text{EN: "📋 %s asks for %s, until %s", ZH: "📋 %s 申请 %s，截止 %s"}
	textFree      = lang.Text{EN: "%d of %s free in %s", ZH: "%[3]s：%[1]d / %[2]s 空闲"}
	textFull      = lang.Text{EN: "%s is full (%s)", ZH: "%s：%s 全部占用"}
	textNextNode  = lang.Text{EN: "%s: a node in about %s", ZH: "%s，约 %s后有节点"}
	textPartition = lang.Text{EN: "%s is down", ZH: "%s：分区已关闭"}
	textNodesOut  = lang.Text{EN: "%d nodes take no jobs: %s", ZH: "%d 个节点不接受作业：%s"}
	textOneOut    = lang.Text{EN: "1 node takes no jobs: %[2]s", ZH: "1 个节点不接受作业：%[2]s"}
	textAllNodes  = lang.Text{EN: "All nodes", ZH: "全部节点"}
)

// needsYou draws the failures of the person's jobs that nobody takes care of yet, each with its
// buttons, and the requests that wait for an operator.
func (b *Bot) needsYou(ctx context.Context, c *ops.Call) (bs []slack.Block) {
	for _, k := range b.news.CardsEndedSince(ctx, b.now().Add(-24*time.Hour)) {
		if k.News.Job.User != c.Who.User || c.Who.User == "" || k.Taken != "" || card.ToneOf(k.News.Job.State) != view.Bad || len(bs) >= 10 {
			continue
		}
		bs = append(bs, slack.NewSectionBlock(answer.Markup(card.Row(k.News, c.Lang)), nil, nil))
		if row := card.Buttons(k, c.Lang); row != nil {
			bs = append(bs, row)
		}
	}
	if c.Who.Operator {
		bs = append(bs, b.requestsOpen(ctx, c)...)
	}
	if len(bs) == 0 {
		bs = append(bs, slack.NewSectionBlock(answer.Label(textNoneNeed.In(c.Lang)), nil, nil))
	}
	return bs
}

// requestsOpen lists the requests that wait for an operator. They are decided in the channel,
// where the whole request is shown, and not here.
func (b *Bot) requestsOpen(ctx context.Context, c *ops.Call) (bs []slack.Block) {
	all, err := b.waiting(ctx)
	b.warn("requests", err)
	for _, w := range all {
		r := w.Request
		if _, person := personsCall(r); !person || !r.Waits() || len(bs) >= 5 {
			continue
		}
		line := fmt.Sprintf(textRequests.In(c.Lang), answer.Escape(r.Who.User), "`"+answer.Escape(r.Op)+"`", card.When(r.Until, "{date_short_pretty} {time}"))
		for _, shown := range w.Cards {
			if at, ok, err := b.cfg.Store.Ref(ctx, shown.Key); err == nil && ok && !strings.HasPrefix(at.Channel, "D") {
				line += " · <#" + at.Channel + ">"
			}
		}
		bs = append(bs, slack.NewSectionBlock(answer.Markup(line), nil, nil))
	}
	return bs
}

// clusterSummary describes in words what is free in each partition, and which nodes accept no
// jobs.
func (b *Bot) clusterSummary(ctx context.Context, c *ops.Call, cluster string) []slack.Block {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	found, err := operations.Run[fleet.NodesOut](ctx, c, "nodes", &fleet.NodesIn{Drained: true, OnCluster: ops.OnCluster{Cluster: cluster}})
	if err != nil {
		return []slack.Block{slack.NewSectionBlock(answer.Label(ops.AsError(err).Message.In(c.Lang)), nil, nil)}
	}
	waits := b.queueWaits(ctx, c, cluster, found.Partitions)
	var parts []string
	for _, p := range found.Partitions {
		switch {
		case !p.Up:
			parts = append(parts, fmt.Sprintf(textPartition.In(c.Lang), p.Name))
		case p.TotalGPUs > 0 && p.FreeGPUs == 0:
			said := textFull.With(p.Name, ops.Counted(p.TotalGPUs, "GPU")).In(c.Lang)
			if wait := waits[p.Name]; wait > 0 {
				said = fmt.Sprintf(textNextNode.In(c.Lang), said, lang.Span(wait).In(c.Lang))
			}
			parts = append(parts, said)
		case p.TotalGPUs > 0:
			parts = append(parts, textFree.With(p.FreeGPUs, ops.Counted(p.TotalGPUs, "GPU"), p.Name).In(c.Lang))
		}
	}
	var bs []slack.Block
	all := slack.NewButtonBlockElement(answer.ActRun+":allnodes", "nodes --cluster "+cluster, answer.Label(textAllNodes.In(c.Lang)))
	if len(parts) > 0 {
		said := strings.Join(parts[:min(len(parts), 12)], lang.Text{EN: "; ", ZH: "；"}.In(c.Lang))
		bs = append(bs, slack.NewSectionBlock(answer.Label(answer.Cut(said, 1500)), nil, slack.NewAccessory(all)))
	}
	var out []string
	for _, n := range found.Nodes {
		name := n.Name
		if n.Reason != "" {
			name += " (" + answer.Cut(answer.OneLine(n.Reason), 80) + ")"
		}
		out = append(out, name)
	}
	if len(out) > 0 {
		said := textNodesOut
		if len(out) == 1 {
			said = textOneOut
		}
		bs = append(bs, answer.ContextLine(answer.Cut(fmt.Sprintf(said.In(c.Lang), len(out), strings.Join(out, ", ")), 1500)))
	}
	return bs
}

// waitsCached is how long Slurm's estimates are cached, since people open the home tab often.
const waitsCached = 2 * time.Minute

// maxWaits is how many partitions are asked about.
const maxWaits = 4

// queueWaits returns how long one would wait for a whole node of each full partition, as Slurm
// estimates it for this person (sbatch --test-only). A partition without an estimate is left
// out.
func (b *Bot) queueWaits(ctx context.Context, c *ops.Call, cluster string, parts []fleet.PartitionFree) map[string]time.Duration {
	var mu sync.Mutex
	var wg sync.WaitGroup
	all := map[string]time.Duration{}
	asked := 0
	for _, p := range parts {
		if !p.Up || p.TotalGPUs == 0 || p.FreeGPUs > 0 || p.GPUs == 0 || asked == maxWaits {
			continue
		}
		asked++
		wg.Go(func() {
			if at, ok := b.likelyStart(ctx, c, cluster, p.Name, p.GPUs); ok {
				mu.Lock()
				defer mu.Unlock()
				all[p.Name] = max(at.Sub(b.now()).Round(time.Minute), time.Minute)
			}
		})
	}
	wg.Wait()
	return all
}

// A cachedStart is an estimate and the time when Slurm gave it.
type cachedStart struct{ start, asked time.Time }

// likelyStart returns when the caller would get a node of a partition.
func (b *Bot) likelyStart(ctx context.Context, c *ops.Call, cluster, partition string, gpus int) (at time.Time, ok bool) {
	key := strings.Join([]string{cluster, partition, c.Who.User}, "/")
	if had, ok := b.starts.Load(key); ok && b.now().Sub(had.(cachedStart).asked) < waitsCached {
		return had.(cachedStart).start, !had.(cachedStart).start.IsZero()
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	at, ok = launch.LikelyStart(ctx, c, c.Clusters[cluster], partition, gpus)
	b.starts.Store(key, cachedStart{at, b.now()})
	return at, ok
}
