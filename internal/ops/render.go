package ops

import (
	"context"
	"io"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// RenderIn is the specification to write as a script.
type RenderIn struct {
	SpecIn
	Minimal bool `json:"minimal,omitempty" help:"the documents' bare skeleton: no guards, no monitoring" zh:"只输出文档中的最小骨架：没有检查与监控"`
}

// RenderOut is the script.
type RenderOut struct {
	Script string `json:"script"`
	// Hash is the specification's, as the script's header has it.
	Hash string `json:"hash"`
}

func render(_ context.Context, c *Call, in RenderIn) (RenderOut, error) {
	s, err := c.spec(in.SpecIn)
	if err != nil {
		return RenderOut{}, err
	}
	sc, err := job.Render(s, job.Options{Minimal: in.Minimal, Version: c.Version, Site: c.site(s)})
	if err != nil {
		return RenderOut{}, fieldErrors(err)
	}
	return RenderOut{Script: sc.Text, Hash: sc.Hash}, nil
}

// Verbatim is the script and nothing else, so that it can be piped into a file.
func (o RenderOut) Verbatim() string { return o.Script }

// View is the script.
func (o RenderOut) View(lang.Lang) view.Doc {
	return view.Doc{Sections: []view.Section{{Code: o.Script, Lang: "bash"}}}
}

// renderBatch looks at the specifications alone: no rules, files or cluster.
func renderBatch(in io.Reader, out io.Writer) error {
	return job.RenderBatch(in, out, job.Options{})
}
