package report

import (
	"fmt"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// A Clock is a node whose clock differs from the others', with the difference in seconds.
type Clock struct {
	Node   string `json:"node"`
	AheadS int64  `json:"ahead_s"`
}

// A Missed is a collective that a rank never entered while others wait in it.
type Missed struct {
	Op      string `json:"op"`
	Seq     int64  `json:"seq"`
	Group   string `json:"group"`
	Waiting int    `json:"waiting"`
}

// notes returns remarks that are not part of the verdict.
func (r Report) notes(l lang.Lang) (out []string) {
	for _, c := range r.Clocks {
		t := said("the clock of %s is %s ahead of the others' and was corrected", "%s 的时钟比其他节点快 %s，已校正")
		if c.AheadS < 0 {
			t = said("the clock of %s is %s behind the others' and was corrected", "%s 的时钟比其他节点慢 %s，已校正")
		}
		out = append(out, t.With(c.Node, (time.Duration(c.AheadS)*time.Second).Abs()).In(l))
	}
	if y := r.Layout; y != nil && r.RanksRead > 0 && r.RanksRead < y.WorldSize {
		out = append(out, said("logs of %d of %d ranks are available", "这里有 %d 个 rank 的日志，共 %d 个").With(r.RanksRead, y.WorldSize).In(l))
	}
	if r.NoLog != (lang.Text{}) {
		out = append(out, r.NoLog.In(l))
	}
	return out
}

// collective names the collective that the rank never entered.
func (r Report) collective(l lang.Lang) string {
	m := r.Missed
	if m == nil {
		return r.Collective
	}
	ranks := said(count(m.Waiting, "rank")+" "+verb(m.Waiting, "waits", "wait"), fmt.Sprintf("%d 个 rank ", m.Waiting))
	return said("%s #%d of group %s (%s in it)", "%s #%d（组 %s，%s在其中等待）").With(m.Op, m.Seq, m.Group, ranks).In(l)
}
