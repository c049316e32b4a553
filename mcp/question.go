package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	sdk "github.com/mark3labs/mcp-go/mcp"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/redact"
	"github.com/megatron-ops/megatron-ops/internal/shellword"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

const (
	// longestDecisive is how long the part of a question may be that decides. It
	// is never cut: a call that needs more is too long to be judged in a form.
	longestDecisive = 16 << 10
	// shownScript is how much of a script follows it.
	shownScript = 6 << 10
)

// A question is what a person is asked, and whether it is about a job that is
// not the caller's.
type question struct {
	text    string
	foreign bool
}

// question says what the call would do: what starts, ends or changes, in one
// line, then every argument in full, then what a dry run adds. What can be
// refused now is refused now, before a person is bothered.
func (s *Server) question(ctx context.Context, call *ops.Call, o ops.Op, in any) (question, *sdk.CallToolResult) {
	var q question
	var decisive []string
	script := ""
	headline := o.Name + "?"
	if dry := withBool(in, "dry_run"); dry != nil {
		out, stop := s.dryRun(ctx, call, o, dry, in)
		if stop != nil {
			return q, stop
		}
		script, _ = stringField(reflectPointer(out), "script")
	}
	if _, asks := boolField(in, yesField); asks && call.Service != nil {
		said, stop := s.unasked(ctx, call, o, in)
		if stop != nil {
			return q, stop
		}
		headline = said + "?"
	}
	var now *slurm.Job
	if id, ok := stringField(in, "job"); ok && slurm.IsJobID(id) && call.Service != nil {
		if now = s.jobNow(ctx, call, id, in); now != nil {
			q.foreign = now.User != "" && now.User != call.Who.User
			decisive = append(decisive, fmt.Sprintf("%s job %s %s of %s: %s, %d nodes, %d GPUs, running for %s?",
				o.Name, now.ID, strconv.Quote(now.Name), exact(now.User), now.State, max(now.NumNodes, len(now.Nodes)), now.GPUs,
				time.Duration(now.ElapsedS)*time.Second))
		}
	}
	if spec, ok := specOf(in); ok {
		if full, err := call.Resolve(spec); err == nil {
			full = full.WithDefaults()
			headline = o.Name + " " + size(full) + "?"
			decisive = append(decisive, written("", reflect.ValueOf(full))...)
		}
	}
	if now == nil || headline != o.Name+"?" {
		decisive = append([]string{headline}, decisive...)
	}
	decisive = append(decisive, changes(in, now)...)
	q.text = redact.Text(strings.Join(decisive, "\n"))
	if len(q.text) > longestDecisive {
		return q, refusal(&ops.Error{
			Code: ops.NotAllowed, Message: fmt.Sprintf("what %s would do takes %d characters to say, too many for a person to judge in a form", o.Name, len(q.text)),
			Fix: "write the specification to a file and have your person run: megatron-ops " + o.Name + " -f FILE",
		})
	}
	if script != "" {
		sum := sha256.Sum256([]byte(script))
		q.text += "\n\nscript, sha256 " + hex.EncodeToString(sum[:]) + ":\n" + clip(redact.Text(redact.Clean(script)), shownScript, "render shows all of it")
	}
	return q, nil
}

// dryRun is what the call would do, or the answer that stops it.
func (s *Server) dryRun(ctx context.Context, call *ops.Call, o ops.Op, dry, in any) (any, *sdk.CallToolResult) {
	out, err := o.Run(ctx, preview(call), dry)
	if err != nil {
		return nil, refusal(ops.AsError(err).In(lang.EN))
	}
	force, _ := boolField(in, "force")
	if f, ok := out.(ops.Finder); ok && f.Found() && !force {
		res, err := answer(o, out, room{bytes: defaultBudget}, "")
		if err != nil {
			res = refusal(ops.AsError(err).In(lang.EN))
		}
		return nil, res
	}
	return out, nil
}

// unasked carries out a call as far as it goes without a yes, and returns what
// it would do in the operation's own words. What is wrong with the call, or
// that there is nothing to do, is the answer that stops it.
func (s *Server) unasked(ctx context.Context, call *ops.Call, o ops.Op, in any) (said string, stop *sdk.CallToolResult) {
	out, err := o.Run(ctx, preview(call), in)
	if e := ops.AsError(err); err != nil && e.Confirm {
		return o.Name + ": " + e.Message, nil
	}
	if err != nil {
		stop, err = s.failed(o, out, err)
	} else {
		stop, err = answer(o, out, room{bytes: defaultBudget}, "")
	}
	if err != nil {
		stop = refusal(ops.AsError(err).In(lang.EN))
	}
	return "", stop
}

// jobNow is the job that a call is about, or nil where the operation itself
// will say what is wrong with it.
func (s *Server) jobNow(ctx context.Context, call *ops.Call, id string, in any) *slurm.Job {
	cluster := call.Clusters[call.Default]
	if name, named := stringField(in, "cluster"); named && name != "" {
		cluster = call.Clusters[name]
	}
	if cluster == nil {
		return nil
	}
	j, err := cluster.Job(ctx, slurm.JobID(id))
	if err != nil {
		return nil
	}
	return &j
}

// specOf is the job specification of an input that has one.
func specOf(in any) (ops.SpecIn, bool) {
	v := reflect.ValueOf(in).Elem()
	for i := range v.NumField() {
		if spec, ok := v.Field(i).Interface().(ops.SpecIn); ok {
			return spec, true
		}
	}
	return ops.SpecIn{}, false
}

// size says what a specification asks for at most.
func size(s job.Spec) string {
	said := strconv.Quote(s.Name) + ": "
	limit, known := slurm.ParseDuration(s.Time)
	switch {
	case s.Time == "":
		said += fmt.Sprintf("%d nodes × %d GPUs for as long as the partition allows", *s.Nodes, *s.GPUsPerNode)
	case !known || limit <= 0:
		said += fmt.Sprintf("%d nodes × %d GPUs WITHOUT A TIME LIMIT", *s.Nodes, *s.GPUsPerNode)
	default:
		said += fmt.Sprintf("%d nodes × %d GPUs × %s = %.4g GPU hours", *s.Nodes, *s.GPUsPerNode, limit, float64(*s.Nodes**s.GPUsPerNode)*limit.Hours())
	}
	if s.Array != "" {
		said += ", for each task of the array " + exact(s.Array)
	}
	if s.Chain != nil {
		said += fmt.Sprintf(", %d jobs one after another", *s.Chain)
	}
	return said
}

// changes are a call's arguments other than the specification, each in full,
// with the old value where the job has one.
func changes(in any, now *slurm.Job) []string {
	old := map[string]string{}
	if now != nil {
		old = map[string]string{"nodes": strconv.Itoa(now.NumNodes), "partition": exact(now.Partition), "qos": exact(now.QOS), "time": "no limit"}
		if now.TimeLimitS != nil {
			old["time"] = (time.Duration(*now.TimeLimitS) * time.Second).String()
		}
	}
	_, update := in.(*ops.UpdateIn)
	var lines []string
	v := reflect.ValueOf(in).Elem()
	for i := range v.NumField() {
		if _, spec := v.Field(i).Interface().(ops.SpecIn); spec {
			continue
		}
		for _, line := range field("", v.Type().Field(i), v.Field(i)) {
			name, value, _ := strings.Cut(line, ": ")
			switch before, known := old[name]; {
			case name == "job" && now != nil || name == "idempotency_key" || name == yesField:
				continue
			case update && known:
				line = name + ": " + before + " → " + value
			}
			lines = append(lines, line)
		}
	}
	return lines
}

// written are the fields of a struct that are set, one a line and in full.
func written(prefix string, v reflect.Value) []string {
	var lines []string
	for i := range v.NumField() {
		lines = append(lines, field(prefix, v.Type().Field(i), v.Field(i))...)
	}
	return lines
}

func field(prefix string, f reflect.StructField, v reflect.Value) []string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if !f.IsExported() || name == "-" || v.IsZero() {
		return nil
	}
	for v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if v.Kind() == reflect.Struct {
		if name != "" {
			prefix += name + "."
		}
		return written(prefix, v)
	}
	return []string{prefix + name + ": " + inFull(v)}
}

// inFull writes a value so that nothing of it can hide: lists and maps as words
// of a shell, and what does not print as its escape.
func inFull(v reflect.Value) string {
	var words []string
	switch value := v.Interface().(type) {
	case []string:
		for _, w := range value {
			words = append(words, quoted(w))
		}
		return strings.Join(words, " ")
	case map[string]string:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			words = append(words, exact(name)+"="+quoted(value[name]))
		}
		return strings.Join(words, " ")
	}
	if v.Kind() == reflect.String {
		return exact(v.String())
	}
	raw, err := json.Marshal(v.Interface())
	if err != nil {
		return exact(fmt.Sprint(v.Interface()))
	}
	return string(raw)
}

// quoted is a word as a shell would be given it.
func quoted(w string) string {
	if e := exact(w); e != w {
		return e
	}
	return shellword.POSIX(w)
}

// exact is s where all of it prints, else s with escapes.
func exact(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}

// reflectPointer is a pointer to a copy of the struct that out holds.
func reflectPointer(out any) any {
	v := reflect.ValueOf(out)
	p := reflect.New(v.Type())
	p.Elem().Set(v)
	return p.Interface()
}
