package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"golang.org/x/term"

	"github.com/megatron-ops/megatron-ops/internal/config"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/jobcontrol"
	"github.com/megatron-ops/megatron-ops/internal/tree"
	"github.com/megatron-ops/megatron-ops/internal/view"
)

// streams are the standard streams, so that tests run a command in-process.
type streams struct {
	in  io.Reader
	out io.Writer
	err io.Writer
}

// A shell is one run of the program: its streams and the values of the flags that every
// command takes.
type shell struct {
	streams
	lang lang.Lang
	// langGiven reports that --lang was given.
	langGiven bool
	// clusterGiven reports that --cluster was given, if only an empty one.
	clusterGiven bool
	json         bool
	yaml         bool // print YAML where json would print JSON
	verbose      bool // show the sections that are folded by default
	cluster      string
	color        bool
	telemetry    *telemetry // nil: nothing is sent
	changed      bool       // an operation that changes something has succeeded
	jobs         []string   // the jobs that its answers name
}

// run executes one command line and returns the exit code. It reports a panic as a bug,
// and its stack only for debugging.
func run(ctx context.Context, args []string, st streams) (code int) {
	outer := ctx
	ctx, end := context.WithCancel(ctx)
	defer end()
	out := &output{to: st.out, lost: end} // what goes on writing for nobody ends
	st.in, st.out = &interruptibleReader{ctx: ctx, from: st.in}, out
	sh := &shell{streams: st, lang: envLang(), color: canDraw(st.out) && os.Getenv("NO_COLOR") == ""}
	defer func() {
		if r := recover(); r != nil {
			fmt.Fprintf(st.err, "megatron-ops: a bug in megatron-ops %s: %v\n", version(), r)
			if os.Getenv("MEGATRON_OPS_DEBUG") != "" {
				fmt.Fprintf(st.err, "%s\n", debug.Stack())
			}
			code = 1
		}
	}()
	if len(args) > 0 && args[0] == "__complete" { // the words after it are an unfinished command line
		return sh.exit(ctx, completeCommand(ctx, sh, args[1:]))
	}
	sh.telemetry = startTelemetry(ctx, sh.logger())
	defer sh.telemetry.end()
	words, err := sh.globalFlags(args)
	if err == nil {
		err = sh.dispatch(ctx, words)
	}
	if lost := out.failure(sh.changed, sh.jobs); lost != nil {
		err = lost
	}
	return sh.exit(outer, err)
}

// globalFlags takes the flags that every command has out of args. It returns the first
// error only after reading all flags, because a later one may set the language of the
// message.
func (sh *shell) globalFlags(args []string) (words []string, err error) {
	for i := 0; i < len(args); i++ {
		a := args[i]
		if a == "--" {
			return append(words, args[i:]...), err
		}
		if a == "-v" || a == "--verbose" {
			sh.verbose = true
			continue
		}
		if format, ok := strings.CutPrefix(a, "-o"); ok && slices.Contains([]string{"text", "json", "yaml"}, format) {
			a = "-o=" + format // as in -ojson
		}
		name, value, inline := strings.Cut(a, "=")
		set, ok := map[string]func(string) error{
			"-o": sh.setOutput, "--output": sh.setOutput,
			"--lang":    sh.setLang,
			"--cluster": func(v string) error { sh.cluster, sh.clusterGiven = v, true; return nil },
		}[name]
		if !ok {
			words = append(words, a)
			continue
		}
		// `ask --lang zh` means the same as `--lang zh ask`.
		if !inline {
			if i+1 == len(args) {
				return nil, &ops.Error{Code: ops.BadInput, Field: strings.TrimLeft(name, "-"), Message: lang.Text{EN: "%s needs a value", ZH: "%s 需要一个值"}.With(name)}
			}
			i++
			value = args[i]
		}
		if wrong := set(value); err == nil {
			err = wrong
		}
	}
	return words, err
}

func (sh *shell) setOutput(v string) error {
	switch v {
	case "json":
		sh.json, sh.yaml = true, false
	case "yaml":
		sh.json, sh.yaml = true, true
	case "text":
		sh.json, sh.yaml = false, false
	default:
		return ops.OutputError(v)
	}
	return nil
}

func (sh *shell) setLang(v string) error {
	l, ok := lang.Parse(v)
	if !ok {
		return &ops.Error{Code: ops.BadInput, Field: "lang", Message: lang.Text{EN: "language %q is not supported", ZH: "不支持语言 %q"}.With(v), Fix: lang.Text{EN: "--lang en or --lang zh", ZH: "--lang en 或 --lang zh"}}
	}
	sh.lang, sh.langGiven = l, true
	return nil
}

// An exitCode ends the program without printing anything.
type exitCode int

func (c exitCode) Error() string { return "exit code " + strconv.Itoa(int(c)) }

// The exit codes of answers that are not errors.
const (
	outOfTime exitCode = 1 // the awaited state has not come in time
	found     exitCode = 3
)

// exit prints err in the requested form and returns the exit code. After an interrupt
// it prints only what became of a change.
func (sh *shell) exit(ctx context.Context, err error) int {
	if err == nil {
		return 0
	}
	signalled, _ := errors.AsType[exitCode](context.Cause(ctx))
	if code, ok := errors.AsType[exitCode](err); ok {
		return int(code)
	}
	if signalled != 0 && errors.Is(err, context.Canceled) {
		return int(signalled)
	}
	if code := sh.printError(ops.AsError(err)); signalled == 0 {
		return code
	}
	return int(signalled)
}

func (sh *shell) printError(e *ops.Error) int {
	if sh.json && sh.printJSON(map[string]any{"error": e.In(sh.lang)}) == nil {
		return e.Code.ExitCode()
	}
	sh.explain(e)
	return e.Code.ExitCode()
}

// warnOfLang says on the standard error that MEGATRON_OPS_LANG names no language. Help and
// version answer all the same; other commands refuse it.
func (sh *shell) warnOfLang() {
	if err := config.CheckLang(os.Getenv); err != nil {
		sh.explain(ops.AsError(err))
	}
}

// explain prints what is wrong and what would work, for people.
func (sh *shell) explain(e *ops.Error) {
	width := widthOf(sh.err)
	all := append([]*ops.Error{e}, e.More...)
	for i, e := range all {
		fmt.Fprint(sh.err, view.Behind("megatron-ops: ", e.Line(sh.lang), width))
		for _, d := range e.Details {
			fmt.Fprint(sh.err, view.Behind("  ", d.In(sh.lang), width))
		}
		if e.Fix.EN != "" && (i+1 == len(all) || all[i+1].Fix != e.Fix) { // once where it is the same for several
			fmt.Fprint(sh.err, view.Behind("megatron-ops: ", lang.Text{EN: "try: ", ZH: "建议："}.In(sh.lang)+e.Fix.In(sh.lang), width))
		}
	}
}

func (sh *shell) printJSON(v any) error {
	doc, err := tree.JSON(v)
	// A document that is too long to read is printed on one line: indenting takes as
	// long as encoding it.
	if err == nil && len(doc) < maxIndentedBytes {
		var lines bytes.Buffer
		err = json.Indent(&lines, doc, "", "  ")
		doc = lines.Bytes()
	}
	doc = append(doc, '\n')
	if err == nil && sh.yaml {
		doc, err = yaml.JSONToYAML(doc)
	}
	if err == nil {
		_, err = sh.out.Write(doc)
	}
	return err
}

const maxIndentedBytes = 256 << 10

// show prints an operation's answer.
func (sh *shell) show(out any) error {
	if s, ok := out.(interface{ Streamed() bool }); ok && s.Streamed() {
		return nil // it is already printed
	}
	if sh.json {
		if err := sh.printJSON(out); err != nil {
			return err
		}
	} else if v, ok := out.(interface{ Verbatim() string }); ok && v.Verbatim() != "" {
		// A script may be redirected to a file, so it is printed without additions.
		if _, err := io.WriteString(sh.out, v.Verbatim()); err != nil {
			return err
		}
		if a, ok := out.(interface{ Aside(l lang.Lang) string }); ok && a.Aside(sh.lang) != "" {
			fmt.Fprintln(sh.err, a.Aside(sh.lang))
		}
	} else if v, ok := out.(view.Viewer); ok {
		style := view.Style{Color: sh.color, Program: "megatron-ops", Next: lang.Text{EN: "next:", ZH: "下一步："}.In(sh.lang)}
		style.Width = sh.width()
		if !sh.verbose {
			style.Folded = view.Unfold.In(sh.lang)
		}
		var text strings.Builder
		d := v.View(sh.lang)
		d.Next = ops.CommandsOn(sh.cluster, d.Next)
		if err := view.Text(&text, d, style); err != nil {
			return err
		}
		if err := sh.page(context.Background(), text.String()); err != nil {
			return err
		}
	}
	if code := exitCodeOf(out); code != 0 {
		return code
	}
	return nil
}

// exitCodeOf returns the exit code of an answer that is not an error.
func exitCodeOf(out any) exitCode {
	if w, ok := out.(jobcontrol.WaitOut); ok && w.TimedOut {
		return outOfTime
	}
	if l, ok := out.(jobcontrol.ListOut); ok && len(l.Missing) > 0 {
		return exitCode(ops.NotFound.ExitCode())
	}
	if l, ok := out.(jobcontrol.ListOut); ok && l.Silent != "" {
		return exitCode(ops.Failed.ExitCode())
	}
	if f, ok := out.(ops.Finder); ok && f.Found() {
		return found
	}
	return 0
}

// release is the version of a released build, set by linker flags.
var release string

// version returns the version of this build: the release, or the module's version, with
// the commit if the build recorded one.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return cmp.Or(release, "unknown")
	}
	commit := ""
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			commit = s.Value[:12]
		}
	}
	v := cmp.Or(release, strings.TrimPrefix(info.Main.Version, "(devel)"))
	switch {
	case v == "":
		return cmp.Or(commit, "devel")
	case commit == "" || strings.Contains(v, commit):
		return v
	}
	return v + " (" + commit + ")"
}

func envLang() lang.Lang {
	for _, name := range []string{"MEGATRON_OPS_LANG", "LC_ALL", "LC_MESSAGES", "LANG"} {
		if l, ok := lang.Parse(os.Getenv(name)); ok {
			return l
		}
	}
	return lang.EN
}

// width is how many columns an answer may use.
func (sh *shell) width() int { return widthOf(sh.out) }

// widthOf returns the width of the terminal w in columns, or 0 if w is not a terminal.
// COLUMNS takes precedence.
func widthOf(w io.Writer) int {
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 && isTerminal(w) {
		return n
	}
	if f := file(w); f != nil {
		if n, _, err := term.GetSize(int(f.Fd())); err == nil {
			return n
		}
	}
	return 0
}

// canDraw reports whether w is a terminal that understands escape sequences, unlike that
// of a shell in Emacs.
func canDraw(w any) bool { return isTerminal(w) && os.Getenv("TERM") != "dumb" }

func isTerminal(w any) bool {
	f := file(w)
	return f != nil && term.IsTerminal(int(f.Fd()))
}

// An interruptibleReader stops waiting when its context ends: a read from a terminal
// cannot be cancelled.
type interruptibleReader struct {
	ctx  context.Context //nolint:containedctx // io.Reader has no context
	from io.Reader
}

// Read reads from the wrapped reader.
func (in *interruptibleReader) Read(p []byte) (int, error) {
	type answer struct {
		n   int
		err error
	}
	came, buf := make(chan answer, 1), make([]byte, len(p))
	go func() {
		n, err := in.from.Read(buf)
		came <- answer{n, err}
	}()
	select {
	case a := <-came:
		return copy(p, buf[:a.n]), a.err
	case <-in.ctx.Done():
		return 0, context.Cause(in.ctx)
	}
}
