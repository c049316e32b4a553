package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path"
	"strconv"
	"strings"

	sdk "github.com/mark3labs/mcp-go/mcp"
	sdkserver "github.com/mark3labs/mcp-go/server"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/joblogs"
	"github.com/megatron-ops/megatron-ops/internal/ops/launch"
	"github.com/megatron-ops/megatron-ops/internal/ops/operations"
	"github.com/megatron-ops/megatron-ops/internal/redact"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/knowledge"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
	"github.com/megatron-ops/megatron-ops/mcp/shorten"
	"github.com/megatron-ops/megatron-ops/skills"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// The URIs of the resources.
const (
	constantsURI = "megatron-ops://constants"
	rulesURI     = "megatron-ops://rules"
	jobSchemaURI = "megatron-ops://schema/job"
	jobsURI      = "megatron-ops://jobs/"

	ruleTemplate  = "megatron-ops://rules/{id}"
	jobTemplate   = "megatron-ops://jobs/{job}"
	logsTemplate  = "megatron-ops://jobs/{job}/logs{?page,rank,node}"
	specTemplate  = "job://{cluster}/{job}/spec"
	skillTemplate = "skill://{name}/{+file}"
	cardTemplate  = knowledge.CardScheme + "{card}"
)

// templates are the URIs with variables, which can be completed.
var templates = []string{ruleTemplate, jobTemplate, logsTemplate, specTemplate, skillTemplate, cardTemplate}

// pageLines is how many log lines a page has; page 0 is the newest.
const pageLines = 200

const (
	markdown = "text/markdown"
	jsonType = "application/json"
)

func (s *Server) addResources() {
	s.fixed(constantsURI, "constants", "the launch constants of Megatron-LM on Slurm, each with its reason", markdown, func(ctx context.Context) (string, error) {
		return s.read(ctx, "constants", nil)
	})
	s.fixed(rulesURI, "rules", "every launch rule by id: what must hold, and where Megatron checks it", markdown, func(context.Context) (string, error) {
		return rulesIndex(), nil
	})
	s.fixed(jobSchemaURI, "job specification", "JSON schema of the job specification, every field", jsonType, func(context.Context) (string, error) {
		raw, err := json.MarshalIndent(job.Schema(), "", " ")
		return string(raw), err
	})
	for _, k := range skills.All() {
		s.fixed("skill://"+k.Name+"/SKILL.md", k.Name, k.Description, markdown, func(context.Context) (string, error) {
			raw, err := skills.File(k.Name, "SKILL.md")
			return string(raw), err
		})
	}
	s.template(skillTemplate, "skill file", "a file of a skill, such as skill://run-on-slurm/references/commands.md", "text/plain", readSkill)
	s.template(ruleTemplate, "rule", "one launch rule, with its condition, reason, remedy and source", markdown, s.readRule)
	s.template(cardTemplate, "knowledge card", "one passage that search or ask returned, in both languages, with its source", markdown, s.readCard)
	s.template(jobTemplate, "job", "one job: state, nodes, times; can be subscribed to", markdown, func(ctx context.Context, a args) (string, error) {
		return s.read(ctx, "status", map[string]any{"job": a["job"]})
	})
	s.template(specTemplate, "job specification",
		"the specification that a job of yours was submitted with; submit takes the job's id as from", jsonType, s.readSpec)
	s.template(logsTemplate, "job logs",
		"a job's log lines, page 0 the newest "+strconv.Itoa(pageLines)+", of all ranks or of one rank or node", "text/plain", s.readLogs)
}

// args are the values of a template's variables.
type args map[string]string

func (s *Server) fixed(uri, name, description, mime string, read func(context.Context) (string, error)) {
	s.sdk.AddResource(sdk.NewResource(uri, name, sdk.WithResourceDescription(description), sdk.WithMIMEType(mime)),
		func(ctx context.Context, _ sdk.ReadResourceRequest) ([]sdk.ResourceContents, error) {
			return s.contents(ctx, uri, mime, func() (string, error) { return read(ctx) })
		})
}

func (s *Server) template(uri, name, description, mime string, read func(context.Context, args) (string, error)) {
	var handler sdkserver.ResourceTemplateHandlerFunc = func(ctx context.Context, req sdk.ReadResourceRequest) ([]sdk.ResourceContents, error) {
		a := args{}
		for k, v := range req.Params.Arguments {
			if words, ok := v.([]string); ok && len(words) > 0 {
				a[k] = words[0]
			}
		}
		return s.contents(ctx, req.Params.URI, mime, func() (string, error) { return read(ctx, a) })
	}
	t := sdk.NewResourceTemplate(uri, name, sdk.WithTemplateDescription(description), sdk.WithTemplateMIMEType(mime))
	s.forms = append(s.forms, t.URITemplate)
	s.sdk.AddResourceTemplate(t, handler)
}

// contents calls read and turns an error into one that a client shows.
func (s *Server) contents(ctx context.Context, uri, mime string, read func() (string, error)) ([]sdk.ResourceContents, error) {
	if e := s.overLimit(ctx); e != nil {
		return nil, protocolError(ctx, e)
	}
	text, err := read()
	if err != nil {
		e := ops.AsError(err)
		s.cfg.Log.Info("read", "uri", plain(uri), "err", cleanError(e).Message.EN)
		return nil, protocolError(ctx, e)
	}
	return []sdk.ResourceContents{sdk.TextResourceContents{URI: uri, MIMEType: mime, Text: text}}, nil
}

// run runs a reading operation for a resource or a completion.
func (s *Server) run(ctx context.Context, name string, a map[string]any) (ops.Op, any, error) {
	o, _ := operations.Lookup(name)
	if e := s.grant(ctx).scope(o); e != nil {
		return o, nil, e
	}
	raw, err := json.Marshal(a)
	if err != nil {
		return o, nil, err
	}
	in := o.NewIn()
	if err := ops.Decode(raw, in, nil); err != nil {
		return o, nil, err
	}
	svc, err := s.service()
	if err != nil {
		return o, nil, err
	}
	out, err := o.Run(ctx, &ops.Call{Service: svc, Who: s.grant(ctx).Caller, Lang: lang.EN, MayRead: s.mayRead, Roots: s.cfg.Roots}, in)
	return o, out, err
}

// readSpec returns the specification that a job was submitted with.
func (s *Server) readSpec(ctx context.Context, a args) (string, error) {
	g := s.grant(ctx)
	if submit, ok := operations.Lookup("submit"); ok && g.scope(submit) != nil {
		return "", g.scope(submit) // a token that may not submit a specification may not copy it
	}
	svc, err := s.service()
	if err != nil {
		return "", err
	}
	spec, err := launch.SubmittedSpec(ctx, (&ops.Call{Service: svc, Who: g.Caller}), a["cluster"], slurm.JobID(a["job"]))
	if err != nil {
		return "", err
	}
	raw, err := json.MarshalIndent(spec, "", " ")
	return redact.Text(string(raw)), err
}

// readCard returns a passage of the knowledge base.
func (s *Server) readCard(_ context.Context, a args) (string, error) {
	svc, err := s.service()
	if err != nil {
		return "", err
	}
	c, ok := svc.Answerer().Card(a["card"])
	if !ok {
		return "", ops.NotFoundError("card",
			lang.Text{EN: "there is no card %q", ZH: "没有卡片 %q"}.With(a["card"]),
			lang.Text{EN: "search returns passages with the address of each card", ZH: "search 返回的段落带有各卡片的地址"})
	}
	var b strings.Builder
	for _, l := range []lang.Lang{lang.EN, lang.ZH} {
		fmt.Fprintf(&b, "## %s\n\n%s\n\n", c.Title.In(l), c.Text.In(l))
	}
	return b.String() + c.URL + "\n", nil
}

// read returns a reading operation's answer as text.
func (s *Server) read(ctx context.Context, name string, a map[string]any) (string, error) {
	o, out, err := s.run(ctx, name, a)
	if err != nil {
		return "", err
	}
	v, ok := shorten.Tidy(out, hasForeignText(o)).(view.Viewer)
	if !ok {
		return "", errInternal
	}
	doc := v.View(lang.EN)
	doc.Next = nil
	return renderText(o, doc, "", 16<<10), nil
}

// readLogs returns one page of a job's log; page 0 ends with the newest line.
func (s *Server) readLogs(ctx context.Context, a args) (string, error) {
	page, err := strconv.Atoi(cmp.Or(a["page"], "0"))
	if err != nil || page < 0 || page > 1000 {
		return "", ops.InputError("page",
			lang.Text{EN: "%q is not a page", ZH: "%q 不是页号"}.With(a["page"]),
			lang.Text{EN: "use 0 for the newest lines, 1 for those before them", ZH: "0 表示最新的行，1 表示其之前的行"})
	}
	in := map[string]any{"job": a["job"], "tail": (page + 1) * pageLines}
	for _, only := range []string{"rank", "node"} {
		if a[only] != "" {
			in[only] = a[only]
		}
	}
	_, out, err := s.run(ctx, "logs", in)
	if err != nil {
		return "", err
	}
	lines := logLines(shorten.Tidy(out, true))
	end := max(0, len(lines)-page*pageLines)
	start := max(0, end-pageLines)
	body := clip(strings.Join(lines[start:end], "\n"), 16<<10, "rank and node choose fewer lines")
	more := "This is the start of the log.\n"
	if start > 0 || len(lines) >= (page+1)*pageLines {
		more = fmt.Sprintf("Older lines: page=%d.\n", page+1)
	}
	return fence(body) + more, nil
}

// logLines returns the lines of the logs operation's output, each with its rank.
func logLines(out any) []string {
	logs, _ := out.(joblogs.LogsOut)
	lines := make([]string, len(logs.Lines))
	for i, l := range logs.Lines {
		lines[i] = l.Text
		if l.Rank != nil {
			lines[i] = fmt.Sprintf("[rank %d] %s", *l.Rank, l.Text)
		}
	}
	return lines
}

func readSkill(_ context.Context, a args) (string, error) {
	file := path.Clean(a["file"])
	raw, err := skills.File(a["name"], file)
	if err != nil {
		return "", ops.NotFoundError("",
			lang.Text{EN: "there is no such file of a skill", ZH: "技能中没有这个文件"},
			lang.Text{EN: "resources/list names the skills; each SKILL.md names its files", ZH: "resources/list 列出各技能；每个 SKILL.md 列出其文件"})
	}
	return string(raw), nil
}

func rulesIndex() string {
	d := view.Doc{Title: "launch rules"}
	t := &view.Table{Header: []string{"id", "must hold", "source"}}
	for _, r := range rules.Table() {
		t.Rows = append(t.Rows, []string{r.ID, r.Requirement.EN, r.Source})
	}
	d.Sections = []view.Section{{Text: "More of one: " + ruleTemplate, Table: t}}
	return view.Markdown(d)
}

func (s *Server) readRule(_ context.Context, a args) (string, error) {
	r, ok := rules.Explain(a["id"])
	if !ok {
		return "", ops.NotFoundError("id",
			lang.Text{EN: "there is no rule %q", ZH: "没有规则 %q"}.With(a["id"]),
			lang.Text{EN: "%s lists them", ZH: "%s 可列出全部"}.With(rulesURI))
	}
	l := lang.EN
	d := view.Doc{Title: r.ID, Sections: []view.Section{{Facts: []view.Fact{
		{Name: "severity", Value: string(r.Severity)},
		{Name: "applies when", Value: r.Condition.In(l)},
		{Name: "must hold", Value: r.Requirement.In(l)},
		{Name: "why", Value: r.Reason.In(l)},
		{Name: "remedy", Value: r.Remedy.In(l)},
		{Name: "flags", Value: strings.Join(r.Flags, ", ")},
		{Name: "source", Value: r.Source},
	}}}}
	return view.Markdown(d), nil
}
