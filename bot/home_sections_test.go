package bot_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/bot"
	"github.com/megatron-ops/megatron-ops/bot/slacktest"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// A fullYard has free GPUs in small alone, and knows when a node of prod will be.
type fullYard struct {
	surveyedYard
	asked *atomic.Int32
}

func (fullYard) Nodes(context.Context) ([]slurm.Node, error) {
	return []slurm.Node{
		{Name: "g1", State: "allocated", GPUs: 8, GPUsUsed: 8, Partitions: []string{"prod"}},
		{Name: "g2", State: "allocated", GPUs: 8, GPUsUsed: 8, Partitions: []string{"dev"}},
		{Name: "g3", State: "mixed", GPUs: 8, GPUsUsed: 2, Partitions: []string{"small"}},
	}, nil
}

func (fullYard) Partitions(context.Context) ([]slurm.Partition, error) {
	return []slurm.Partition{{Name: "prod", Up: true, GPUs: 8, Total: 1}, {Name: "dev", Up: true, GPUs: 8, Total: 1}, {Name: "small", Up: true, GPUs: 8, Total: 1}}, nil
}

func (y fullYard) Test(_ context.Context, s slurm.Submission) (slurm.Estimate, error) {
	y.asked.Add(1)
	if strings.Contains(s.Script, "--partition=prod\n") {
		return slurm.Estimate{Start: time.Now().Add(2*time.Hour + 10*time.Second)}, nil
	}
	return slurm.Estimate{}, errors.New("no estimate")
}

// Home says by Slurm's own estimate when a full partition has a node, and nothing
// where there is none.
func TestHomeSaysWhenAFullPartitionHasANode(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	s := play(t, func(c *bot.Config) {
		c.Service.Clusters["yard"] = fullYard{surveyedYard{c.Service.Clusters["yard"].(*yard)}, &asked}
	})
	open := func(words string) {
		s.Event(map[string]any{"type": "app_home_opened", "user": "U1", "channel": "DU1", "tab": "home", "event_ts": time.Now().Format("05.000000")})
		s.Wait("home with "+words, func(st slacktest.State) bool { return strings.Contains(slacktest.JSON(st.Homes["U1"]), words) })
	}
	open("prod is full (8 GPUs): a node in about 2 h; dev is full (8 GPUs); 6 of 8 GPUs free in small")
	s.Slash("settings lang zh")
	s.said("设置")
	open("prod：8 张 GPU 全部占用，约 2 小时后有节点；dev：8 张 GPU 全部占用；small：6 / 8 张 GPU 空闲")
	require.EqualValues(t, 2, asked.Load(), "Slurm is asked once in two minutes")
}
