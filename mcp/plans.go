package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"reflect"
	"slices"
	"sync"

	sdk "github.com/mark3labs/mcp-go/mcp"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/launch"
)

// mostPlans is how many accepted plans of one person are kept, and mostPlanBytes how much all
// may fill.
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
	order map[string][]string // the handles of each person, oldest first
	size  map[string]int      // how much the plans of each person fill
	bytes int                 // of all
}

// A keptPlan is an accepted specification, and its size as JSON.
type keptPlan struct {
	spec  launch.SpecIn
	bytes int
}

func newPlans() *plans {
	return &plans{specs: map[string]keptPlan{}, order: map[string][]string{}, size: map[string]int{}}
}

// keep stores an accepted plan's specification and adds its handle to the answer.
func (p *plans) keep(res *sdk.CallToolResult, in any, who ops.Caller) {
	of, ok := in.(launch.Specified)
	object, isObject := res.StructuredContent.(json.RawMessage)
	if !ok || !isObject {
		return
	}
	spec := *of.Specification()
	raw, err := json.Marshal(spec)
	if err != nil {
		return
	}
	handle := handleOf(raw, who)
	p.mu.Lock()
	defer p.mu.Unlock()
	person := personOf(who)
	if _, known := p.specs[handle]; !known {
		p.order[person] = append(p.order[person], handle)
		p.add(person, planCost(raw))
	}
	p.specs[handle] = keptPlan{spec, planCost(raw)}
	if len(p.order[person]) > mostPlans {
		p.dropOldest(person)
	}
	for p.bytes > mostPlanBytes {
		p.dropOldest(p.largest())
	}
	res.StructuredContent = json.RawMessage(withLeadingFields([]leadingField{{planField, handle}}, object))
	res.Content = append(res.Content, sdk.NewTextContent("plan: "+handle+" (submit takes it in place of spec)\n"))
}

// planOverhead is about what a plan fills besides its text, so that many small ones count too.
const planOverhead = 4 << 10

func planCost(raw []byte) int { return len(raw) + planOverhead }

func (p *plans) add(person string, bytes int) {
	p.size[person] += bytes
	p.bytes += bytes
}

func (p *plans) largest() (person string) {
	for one, size := range p.size {
		if size > p.size[person] {
			person = one
		}
	}
	return person
}

func (p *plans) dropOldest(person string) {
	oldest := p.order[person][0]
	p.add(person, -p.specs[oldest].bytes)
	delete(p.specs, oldest)
	if p.order[person] = slices.Delete(p.order[person], 0, 1); len(p.order[person]) == 0 {
		delete(p.order, person)
		delete(p.size, person)
	}
}

func handleOf(spec []byte, who ops.Caller) string {
	sum := sha256.Sum256(append([]byte(ownerOf(who)+"\x00"), spec...))
	return "p" + hex.EncodeToString(sum[:8])
}

// fill puts the specification that handle names into in. The handle must be the
// caller's own.
func (p *plans) fill(in any, who ops.Caller, handle string) *ops.Error {
	of, ok := in.(launch.Specified)
	if !ok {
		return nil
	}
	given := of.Specification()
	if !reflect.ValueOf(*given).IsZero() {
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
	*given = kept.spec
	return nil
}
