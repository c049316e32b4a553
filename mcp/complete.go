package mcp

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	sdk "github.com/mark3labs/mcp-go/mcp"

	"github.com/megatron-ops/megatron-ops/internal/ops/jobcontrol"
	"github.com/megatron-ops/megatron-ops/knowledge/library"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
	"github.com/megatron-ops/megatron-ops/mcp/shorten"
	"github.com/megatron-ops/megatron-ops/skills"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// maxCompletions is how many values the protocol allows in one answer.
const maxCompletions = 100

// A completer completes the arguments of prompts and the variables of resource
// templates. A name means the same in both, so one table serves both.
type completer struct{ s *Server }

// CompletePromptArgument completes a prompt's argument.
func (c completer) CompletePromptArgument(ctx context.Context, name string, arg sdk.CompleteArgument, with sdk.CompleteContext) (*sdk.Completion, error) {
	if !slices.ContainsFunc(prompts, func(p promptRow) bool { return p.name == name }) {
		return nil, codedError{sdk.INVALID_PARAMS, fmt.Errorf("there is no prompt %q; prompts/list names them", plain(name))}
	}
	return c.complete(ctx, arg, with)
}

// CompleteResourceArgument completes a template's variable.
func (c completer) CompleteResourceArgument(ctx context.Context, uri string, arg sdk.CompleteArgument, with sdk.CompleteContext) (*sdk.Completion, error) {
	if !slices.Contains(templates, uri) {
		return nil, codedError{sdk.INVALID_PARAMS, fmt.Errorf("there is no resource template %q; resources/templates/list names them", plain(uri))}
	}
	return c.complete(ctx, arg, with)
}

func (c completer) complete(ctx context.Context, arg sdk.CompleteArgument, with sdk.CompleteContext) (done *sdk.Completion, err error) {
	defer guard{c.s.cfg.Log}.recovered("completion", &err)
	var all []string
	switch arg.Name {
	case "job":
		all = c.jobs(ctx, func(j slurm.Job) string { return string(j.ID) })
	case "partition":
		all = c.jobs(ctx, func(j slurm.Job) string { return j.Partition })
	case "node":
		all = c.job(ctx, with).Nodes
	case "rank":
		j := c.job(ctx, with)
		for i := range max(j.GPUs, len(j.Nodes)) {
			all = append(all, strconv.Itoa(i))
		}
	case "skill", "name":
		all = skillNames()
	case "file":
		if k, ok := skills.Get(with.Arguments["name"]); ok {
			all = k.Files
		}
	case "card":
		for _, k := range library.BuiltIn().Cards {
			all = append(all, k.ID)
		}
	case "id":
		for _, r := range rules.Table() {
			all = append(all, r.ID)
		}
	}
	values := []string{}
	for _, v := range all {
		if v != "" && strings.HasPrefix(v, arg.Value) && !slices.Contains(values, v) {
			values = append(values, v)
		}
	}
	total := len(values)
	return &sdk.Completion{Values: values[:min(total, maxCompletions)], Total: total, HasMore: total > maxCompletions}, nil
}

// skillNames returns the names of the skills.
func skillNames() (names []string) {
	for _, k := range skills.All() {
		names = append(names, k.Name)
	}
	return names
}

// jobs returns a value of each job that list shows, ended jobs too. If list fails, it
// returns nothing: a completion is a help, not an answer.
func (c completer) jobs(ctx context.Context, of func(slurm.Job) string) (values []string) {
	list, _ := c.fetch(ctx, "list", map[string]any{"all": true}).(jobcontrol.ListOut)
	for _, j := range list.Jobs {
		values = append(values, of(j))
	}
	return values
}

// job returns the job that was chosen before in the same prompt or template.
func (c completer) job(ctx context.Context, with sdk.CompleteContext) slurm.Job {
	id := with.Arguments["job"]
	if id == "" {
		return slurm.Job{}
	}
	status, _ := c.fetch(ctx, "status", map[string]any{"job": id}).(jobcontrol.StatusOut)
	return status.Job
}

// fetch returns an operation's cleaned output, or nil if the operation fails or the caller's
// person has made too many calls.
func (c completer) fetch(ctx context.Context, op string, a map[string]any) any {
	if c.s.overLimit(ctx) != nil {
		return nil
	}
	_, out, err := c.s.run(ctx, op, a)
	if err != nil {
		return nil
	}
	return shorten.Tidy(out, true)
}
