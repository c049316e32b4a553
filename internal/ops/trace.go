package ops

import (
	"cmp"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/megatron-ops/megatron-ops/internal/tracing"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// endSpan ends an operation's span. It records the operation's name and surface, the
// cluster and the job where these are valid names, and how the operation ended.
func (o Op) endSpan(span trace.Span, c *Call, in, out any, err error) {
	if !span.IsRecording() {
		return
	}
	span.SetAttributes(attribute.String("megatron_ops.operation", o.Name), attribute.String("megatron_ops.surface", string(c.Who.Surface)))
	if c.Service != nil {
		name := cmp.Or(TextNamed(in, "cluster"), c.Default)
		if _, ok := c.Clusters[name]; ok { // any other word is the caller's and may be anything
			span.SetAttributes(attribute.String("slurm.cluster", name))
		}
	}
	job := cmp.Or(TextNamed(out, "job_id"), TextNamed(in, "job"))
	if slurm.IsJobID(job) {
		span.SetAttributes(attribute.String("slurm.job_id", job))
	}
	code := "ok"
	if err != nil {
		code = string(AsError(err).Code)
	} else if f, ok := out.(Finder); ok && f.Found() {
		code = "found"
	}
	tracing.End(span, code)
}
