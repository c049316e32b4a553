package mcp

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/operations"
	"github.com/megatron-ops/megatron-ops/internal/ops/pipeline"
	"github.com/megatron-ops/megatron-ops/internal/shellword"
	"github.com/megatron-ops/megatron-ops/internal/tree"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// A hint is a call worth making next.
type hint struct {
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
}

// commandLine is the argument that holds what stands behind "--" in the shell.
const commandLine = "command_line"

// hints translates shell commands into tool calls. It leaves out commands that are no
// operation or that arguments cannot express.
func hints(commands []string) []hint {
	all := []hint{}
	for _, command := range commands {
		if h, ok := hintOf(command); ok {
			all = append(all, h)
		}
	}
	return all
}

// hintOf translates a shell command, without the program's name, into a tool call.
func hintOf(command string) (hint, bool) {
	argv, err := megatron.SplitWords(command)
	if err != nil || len(argv) == 0 {
		return hint{}, false
	}
	o, ok := operations.Lookup(argv[0])
	if !ok {
		return hint{}, false
	}
	in := o.NewIn()
	given := map[string]any{}
	if ops.FieldNamed(in, commandLine).IsValid() { // the program's arguments, behind "--"
		if i := slices.Index(argv, "--"); i >= 0 {
			given[commandLine], argv = shellword.Line(argv[i+1:]), argv[:i]
		}
	}
	if i := slices.Index(argv, "--cluster"); i > 0 && i+1 < len(argv) { // every command takes it
		if on, ok := in.(interface{ On(cluster string) }); ok {
			on.On(argv[i+1])
		}
		argv = slices.Delete(argv, i, i+2)
	}
	if o.Words(in, argv[1:]) != nil {
		return hint{}, false
	}
	v := reflect.ValueOf(in).Elem()
	for _, f := range reflect.VisibleFields(v.Type()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == yesField || !f.IsExported() {
			continue
		}
		value := v.FieldByIndex(f.Index)
		_, text := f.Tag.Lookup("text") // the shell's words are one text to an agent
		words, many := value.Interface().([]string)
		switch {
		case value.IsZero() || f.Tag.Get("default") != "" && fmt.Sprint(value.Interface()) == f.Tag.Get("default"):
		case name != "-":
			given[name] = value.Interface()
		case text && many:
			given[f.Tag.Get("name")] = strings.Join(words, " ")
		}
	}
	line, err := tree.JSON(given)
	return hint{o.Name, line}, err == nil
}

// shellCommand matches a shell command between backticks, with or without the program's
// name or Slack's in front.
var shellCommand = regexp.MustCompile("`(megatron-ops |/megatron )?([a-z-]+)( [^`\n]*)?`")

// clusterOf returns the cluster that the calls after this one must name: the one that this call
// named and, where there are several, also the one that it was about without a name. An agent
// may come back later, when another one is the default.
func clusterOf(call *ops.Call, in, out any) string {
	named := ops.TextNamed(in, "cluster")
	if _, own := out.(pipeline.Out); named != "" || own || !call.Several() {
		return named // a pipeline's steps have clusters of their own
	}
	if spec := ops.FieldNamed(in, "spec"); spec.IsValid() && spec.CanInterface() {
		named = ops.TextNamed(spec.Interface(), "cluster")
	}
	return cmp.Or(named, ops.TextNamed(out, "cluster"), call.Default)
}

// onCluster adds the cluster to the shell commands in a text that take one.
func onCluster(text, cluster string) string {
	if cluster == "" {
		return text
	}
	return shellCommand.ReplaceAllStringFunc(text, func(said string) string {
		m := shellCommand.FindStringSubmatch(said)
		o, ok := operations.Lookup(m[2])
		if !ok || m[3] == "" {
			return said
		}
		if _, takes := o.NewIn().(interface{ On(cluster string) }); !takes {
			return said
		}
		return "`" + m[1] + ops.CommandsOn(cluster, []string{m[2] + m[3]})[0] + "`"
	})
}

// asCalls replaces shell commands in a text by tool calls, because an agent has no
// shell here. If the tool lacks one of the command's arguments, such as a file to read,
// the replacement is the tool's example, or its name.
func asCalls(text string) string {
	if !strings.Contains(text, "`") {
		return text
	}
	return shellCommand.ReplaceAllStringFunc(text, func(said string) string {
		m := shellCommand.FindStringSubmatch(said)
		o, ok := operations.Lookup(m[2])
		if !ok || m[1] == "" && m[3] == "" {
			return said
		}
		if h, ok := hintOf(m[2] + m[3]); ok && takes(o, h) && (m[3] == "" || len(h.Arguments) > len("{}")) {
			return "`" + o.Name + " " + string(h.Arguments) + "`"
		}
		if m[1] == "" {
			return said
		}
		return "`" + strings.TrimRight(o.Name+" "+cmp.Or(examples[o.Name], plainExamples[o.Name]), " ") + "`"
	})
}

// plainExamples are examples of operations whose description needs none.
var plainExamples = map[string]string{"import": examples["lint"]}

// shellOption matches a shell option outside of a quoted command.
var shellOption = regexp.MustCompile(`(^|[\s(])--([a-z][a-z-]*)`)

// argumentNames maps the options of operations that Megatron has not to their names as
// arguments.
func argumentNames(of ...ops.Op) map[string]string {
	own := map[string]string{}
	for _, o := range of {
		for _, p := range o.InputSchema().Properties {
			option := strings.ReplaceAll(p.Name, "_", "-")
			if _, megatrons := megatron.LookupFlag("--" + option); !megatrons {
				own[option] = p.Name
				if p.Schema.Type == "boolean" {
					own[option] += "=true"
				}
			}
		}
	}
	return own
}

// ownOptions maps the options that operations have, and that neither Megatron nor
// sbatch has, to their names as arguments.
var ownOptions = sync.OnceValue(func() map[string]string {
	own := argumentNames(operations.All()...)
	for _, f := range job.Fields() {
		delete(own, strings.ReplaceAll(f.Name, "_", "-"))
	}
	return own
})

// asArguments replaces shell options in a sentence of ours by argument names.
func asArguments(text string, own map[string]string) string {
	if !strings.Contains(text, "--") {
		return text
	}
	return shellOption.ReplaceAllStringFunc(text, func(said string) string {
		m := shellOption.FindStringSubmatch(said)
		if name := own[m[2]]; name != "" {
			return m[1] + name
		}
		return said
	})
}

// takes reports whether o's tool has all of h's arguments.
func takes(o ops.Op, h hint) bool {
	var given map[string]json.RawMessage
	if json.Unmarshal(h.Arguments, &given) != nil {
		return false
	}
	in := o.InputSchema()
	for name := range given {
		if !slices.ContainsFunc(in.Properties, func(p ops.Property) bool { return p.Name == name }) {
			return false
		}
	}
	return true
}

// backticked matches text between backticks within a JSON string.
var backticked = regexp.MustCompile("`[^`]*`")

// asCallsIn applies asCalls to the strings of a JSON document.
func asCallsIn(object []byte, cluster string) []byte {
	return backticked.ReplaceAllFunc(object, func(quoted []byte) []byte {
		var said string
		if json.Unmarshal([]byte(`"`+string(quoted)+`"`), &said) != nil {
			return quoted
		}
		called := asCalls(onCluster(said, cluster))
		if called == said {
			return quoted
		}
		line, err := tree.JSON(called)
		if err != nil {
			return quoted
		}
		return bytes.Trim(line, `"`)
	})
}
