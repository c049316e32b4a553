package answers

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/knowledge"
)

// modelMayCall names the operations that a model may call while it writes an answer. All of
// them only read. Operations on a cluster need a person who is linked to a cluster
// user.
var modelMayCall = []struct {
	name    string
	cluster bool
}{
	{"plan", false},
	{"memory", false},
	{"recommend", false},
	{"constants", false},
	{"rules", false},
	{"explain", false},
	{"status", true},
	{"list", true},
	{"logs", true},
	{"diagnose", true},
	{"queue", true},
	{"nodes", true},
}

// modelTools returns those of all operations that a model may call for the caller, with
// the caller's rights and never with more.
func modelTools(c *ops.Call, all []ops.Op) []knowledge.Tool {
	var list []knowledge.Tool
	for _, may := range modelMayCall {
		i := slices.IndexFunc(all, func(o ops.Op) bool { return o.Name == may.name })
		if i < 0 || all[i].Effect != ops.Read || may.cluster && (len(c.Clusters) == 0 || c.Who.User == "") {
			continue
		}
		op := all[i]
		schema, err := json.Marshal(op.InputSchema())
		if err != nil {
			continue
		}
		call := func(ctx context.Context, args json.RawMessage) (string, error) { return callForModel(ctx, c, op, args) }
		list = append(list, knowledge.Tool{Name: op.Name, Description: op.Summary.EN, Schema: schema, Call: call})
	}
	return list
}

// callForModel runs a model's tool call.
func callForModel(ctx context.Context, c *ops.Call, op ops.Op, args json.RawMessage) (string, error) {
	own := *c
	own.Dir, own.Stdin, own.Stream, own.Progress, own.Who.ReadOnly = "", nil, nil, nil, true
	own.MayRead = func(path string) error {
		return &ops.Error{Code: ops.NotAllowed, Message: lang.Text{EN: "a model may not read files: %s", ZH: "模型不允许读取文件：%s"}.With(path)}
	}
	in := op.NewIn()
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	if err := ops.Decode(args, in, nil); err != nil {
		return "", err
	}
	out, err := op.Run(ctx, &own, in)
	if err != nil {
		return "", err
	}
	raw, err := json.Marshal(out)
	return string(raw), err
}
