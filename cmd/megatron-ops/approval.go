package main

import (
	"context"
	"errors"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/config"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/policy"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// needsApproval returns why a call must be approved, or an empty text if it need not
// be. The operation itself refuses a wrong specification, an unknown job and a caller
// who may not act; a call whose use cannot be computed for another reason needs
// approval.
func needsApproval(c *ops.Call, a config.Approval, in any) lang.Text {
	if a.Limits.None() {
		return lang.Text{}
	}
	use, takes, err := policy.Of(context.Background(), c, in)
	if err != nil {
		switch ops.AsError(err).Code {
		case ops.BadInput, ops.NotFound, ops.NotAllowed:
			return lang.Text{}
		}
		if errors.Is(err, slurm.ErrNotFound) {
			return lang.Text{}
		}
		return lang.Text{EN: "what it may use cannot be determined: %v", ZH: "无法判断它会占用多少资源：%v"}.With(err)
	}
	if !takes {
		return lang.Text{}
	}
	return joinReasons(a.Over(use))
}

func joinReasons(why []lang.Text) (all lang.Text) {
	var en, zh []string
	for _, w := range why {
		en, zh = append(en, w.EN), append(zh, w.ZH)
	}
	return lang.Text{EN: strings.Join(en, "; "), ZH: strings.Join(zh, "；")}
}
