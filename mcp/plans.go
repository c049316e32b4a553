package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"reflect"
	"slices"
	"sync"

	sdk "github.com/mark3labs/mcp-go/mcp"

	"github.com/megatron-ops/megatron-ops/internal/consent"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/launch"
)

// mostPlans is how many accepted plans are kept, and mostPlanBytes how much they may fill.
const (
	mostPlans     = 256
	mostPlanBytes = 16 << 20
)

// plans keeps the specifications that plan has accepted, each under a handle, so that
// an agent need not write a specification twice. A handle is a digest of the
// specification and of the caller who planned it; it works for that caller alone.
type plans struct {
	mu    sync.Mutex
	specs map[string]keptPlan
	order []string // oldest first
	bytes int      // of all
}

// A keptPlan is an accepted specification, and its size as JSON.
type keptPlan struct {
	spec  launch.SpecIn
	bytes int
}

func newPlans() *plans { return &plans{specs: map[string]keptPlan{}} }

// keep stores an accepted plan's specification and adds its handle to the answer.
func (p *plans) keep(res *sdk.CallToolResult, in any, who ops.Caller) {
	spec, ok := consent.SpecOf(in)
	object, isObject := res.StructuredContent.(json.RawMessage)
	raw, err := json.Marshal(spec)
	if !ok || !isObject || err != nil {
		return
	}
	handle := handleOf(raw, who)
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, known := p.specs[handle]; !known {
		p.order = append(p.order, handle)
		p.bytes += len(raw)
	}
	p.specs[handle] = keptPlan{spec, len(raw)}
	for len(p.order) > mostPlans || p.bytes > mostPlanBytes {
		p.bytes -= p.specs[p.order[0]].bytes
		delete(p.specs, p.order[0])
		p.order = slices.Delete(p.order, 0, 1)
	}
	res.StructuredContent = json.RawMessage(withLeadingFields([]leadingField{{planField, handle}}, object))
	res.Content = append(res.Content, sdk.NewTextContent("plan: "+handle+" (submit takes it in place of spec)\n"))
}

// handleOf returns the handle of one caller's specification.
func handleOf(spec []byte, who ops.Caller) string {
	sum := sha256.Sum256(append([]byte(ownerOf(who)+"\x00"), spec...))
	return "p" + hex.EncodeToString(sum[:8])
}

// fill puts the specification that handle names into in. The handle must be the
// caller's own.
func (p *plans) fill(in any, who ops.Caller, handle string) *ops.Error {
	v := reflect.ValueOf(in).Elem()
	for _, field := range v.Fields() {
		given, ok := field.Interface().(launch.SpecIn)
		if !ok {
			continue
		}
		if !reflect.ValueOf(given).IsZero() {
			return ops.InputError(planField,
				lang.Text{EN: "both a specification and the handle of a plan are given", ZH: "plan 的句柄之外又给出了规格"},
				lang.Text{EN: "give one of the two", ZH: "请二选一"})
		}
		p.mu.Lock()
		kept, known := p.specs[handle]
		p.mu.Unlock()
		raw, err := json.Marshal(kept.spec)
		if !known || err != nil || handleOf(raw, who) != handle {
			return ops.InputError(planField,
				lang.Text{EN: "no accepted plan has that handle", ZH: "没有该句柄对应的已通过的 plan"},
				lang.Text{EN: "call plan with the specification, and give the handle that it returns", ZH: "请以规格调用 plan，并使用它返回的句柄"})
		}
		field.Set(reflect.ValueOf(kept.spec))
	}
	return nil
}
