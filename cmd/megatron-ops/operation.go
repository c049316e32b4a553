package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/account"
	"github.com/megatron-ops/megatron-ops/internal/config"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/view"
)

// operation runs one operation of the table for the person at this shell.
func (sh *shell) operation(ctx context.Context, op ops.Op, words []string) error {
	if file, rest, ok := takeFlag(words, "--batch"); ok {
		return sh.batch(op, file, rest)
	}
	if len(words) == 0 && takesSpec[op.Name] && sh.redirected() {
		return ops.InputError("file",
			lang.Text{EN: "standard input is a file, and nothing says that it is to be read", ZH: "标准输入是一个文件，但没有指明要读取它"},
			lang.Text{EN: "`megatron-ops %s -` reads it", ZH: "`megatron-ops %s -` 会读取它"}.With(op.Name))
	}
	if op.Effect != ops.Read { // a change is recorded
		if _, err := config.StateDir(os.Getenv); err != nil {
			return err
		}
	}
	if op.Effect != ops.Read && sh.clusterGiven && sh.cluster == "" {
		return ops.EmptyValueError("--cluster") // another cluster's jobs would be meant
	}
	call, err := sh.call()
	if err != nil {
		return err
	}
	ins, lines, err := sh.inputs(ctx, call, op, words)
	if err != nil {
		return err
	}
	if sh.wantsLiveTable(ins) {
		return sh.watch(ctx, call, op, ins[0])
	}
	var left []func() error
	call.AtEnd = func(f func() error) { left = append(left, f) }
	err = sh.answers(ctx, call, op, ins, lines)
	for _, f := range left {
		if e := f(); e != nil {
			fmt.Fprintln(sh.err, "megatron-ops:", view.Plainly(lang.Said(e).In(sh.lang)))
		}
	}
	return err
}

// takesSpec are the operations that judge or run an empty specification where none is given.
var takesSpec = map[string]bool{"plan": true, "render": true, "submit": true}

// redirected reports whether standard input is a file with something in it, as after <.
func (sh *shell) redirected() bool {
	f := file(sh.in)
	if f == nil {
		return false
	}
	st, err := f.Stat()
	return err == nil && st.Mode().IsRegular() && st.Size() > 0
}

// inputs returns the operation's inputs: one for each job that words name, or one for
// each document on standard input. lines reports that the answers are printed as JSON
// Lines.
func (sh *shell) inputs(ctx context.Context, call *ops.Call, op ops.Op, words []string) (ins []any, lines bool, err error) {
	if file, rest, ok := takeFlag(words, "--input"); ok {
		ins, err = sh.documents(op, file, rest)
		return ins, true, err
	}
	each, err := sh.perJob(ctx, call, op, words)
	if err != nil {
		return nil, false, err
	}
	for _, own := range each {
		in := op.NewIn()
		if err := op.Words(in, own); err != nil {
			return nil, false, err
		}
		sh.setCluster(in)
		ins = append(ins, in)
	}
	return ins, false, nil
}

// setCluster passes --cluster on to an input that has a cluster of its own.
func (sh *shell) setCluster(in any) {
	if w, ok := in.(interface{ On(cluster string) }); ok && sh.cluster != "" {
		w.On(sh.cluster)
	}
}

// documents reads a sequence of JSON objects with the field names that agents use.
func (sh *shell) documents(op ops.Op, file string, rest []string) (ins []any, err error) {
	from, err := sh.open("input", file)
	if err != nil {
		return nil, err
	}
	defer from.Close()
	if len(rest) > 0 {
		return nil, ops.InputError(rest[0], lang.Text{EN: "%q cannot be combined with --input: the document contains everything", ZH: "%q 与 --input 同时出现：文档已说明一切"}.With(rest[0]), lang.Text{})
	}
	for d := json.NewDecoder(from); ; {
		var raw json.RawMessage
		switch err := d.Decode(&raw); {
		case errors.Is(err, io.EOF) && len(ins) > 0:
			return ins, nil
		case err != nil:
			return nil, ops.InputError("input", lang.Text{EN: "is not JSON: %s", ZH: "不是 JSON：%s"}.With(err.Error()), lang.Text{EN: "send an object such as {\"job\": \"4711\"}", ZH: "请给出对象，例如 {\"job\": \"4711\"}"})
		}
		in := op.NewIn()
		if err := op.Decode(raw, in, nil); err != nil {
			return nil, err
		}
		sh.setCluster(in)
		ins = append(ins, in)
	}
}

// A result is the outcome for one of several inputs.
type result struct {
	out any
	err error
}

// answers runs the operation for each input and shows the results. Inputs that need a
// confirmation share one question. The first failure gives the exit code.
func (sh *shell) answers(ctx context.Context, call *ops.Call, op ops.Op, ins []any, lines bool) error {
	all, open := make([]result, len(ins)), []int{}
	for i, in := range ins {
		all[i].out, all[i].err = op.Run(ctx, call, in)
		open = append(open, i)
	}
	var asked bool
	for {
		var question []string
		open = slices.DeleteFunc(open, func(i int) bool {
			e := ops.AsError(all[i].err)
			if e == nil || !e.Confirm || call.Confirmed && e.Shown == "" {
				return true
			}
			for _, d := range e.Details {
				question = append(question, "  "+d.In(sh.lang))
			}
			question = append(question, e.Message.In(sh.lang))
			return false
		})
		if asked = len(open) > 0; !asked {
			break
		}
		if !sh.confirms(question...) {
			for _, i := range open {
				if sh.asks() {
					all[i].err = errDeclined
				}
			}
			break
		}
		for _, i := range open { // if the situation has changed since the question, ask again
			call.Confirmed, call.Shown = true, ops.AsError(all[i].err).Shown
			all[i].out, all[i].err = op.Run(ctx, call, ins[i])
		}
	}
	for _, r := range all {
		if d, ok := r.out.(ops.Doer); op.Effect == ops.Read || r.err != nil || ok && !d.Did() {
			continue
		}
		sh.changed = true
		if id := jobOf(r.out); id != "" {
			sh.jobs = append(sh.jobs, id)
		}
	}
	if len(all) == 1 && !lines {
		if err := all[0].err; err != nil {
			if ctx.Err() != nil && (asked || op.Effect == ops.Read) { // nothing was changed
				return context.Cause(ctx)
			}
			return err
		}
		return sh.show(all[0].out)
	}
	return sh.showAll(ctx, ins, all, lines)
}

// errDeclined is the answer to a person who was asked to go on and did not say yes: they have just
// read what would have been done.
var errDeclined = &ops.Error{Code: ops.NotAllowed, Message: lang.Text{EN: "nothing was done", ZH: "没有执行任何操作"}}

// showAll prints the results for several inputs.
func (sh *shell) showAll(ctx context.Context, ins []any, all []result, lines bool) error {
	code := 0
	docs := make([]any, len(all))
	for i, a := range all {
		switch {
		case a.err != nil:
			e := ops.AsError(a.err)
			code = cmp.Or(code, e.Code.ExitCode())
			docs[i] = map[string]any{"job_id": jobOf(ins[i]), "error": e.In(sh.lang)}
			if !sh.json {
				sh.exit(ctx, a.err)
			}
		case sh.json:
			docs[i] = a.out
			code = cmp.Or(code, int(exitCodeOf(a.out)))
		default:
			if i > 0 {
				fmt.Fprintln(sh.out)
			}
			own, _ := errors.AsType[exitCode](sh.show(a.out))
			code = cmp.Or(code, int(own))
		}
	}
	switch {
	case sh.json && lines:
		enc := json.NewEncoder(sh.out)
		for _, d := range docs {
			_ = enc.Encode(d) // a failed write means that the reader is gone
		}
	case sh.json:
		if err := sh.printJSON(map[string]any{"jobs": docs}); err != nil {
			return err
		}
	}
	if code == 0 {
		return nil
	}
	return exitCode(code)
}

// jobOf returns the job that an input or an answer names, or "".
func jobOf(doc any) string { return cmp.Or(ops.TextNamed(doc, "job_id"), ops.TextNamed(doc, "job")) }

// asks reports whether there is a person at a terminal who can be asked.
func (sh *shell) asks() bool { return isTerminal(sh.in) && !sh.json }

// confirms asks the person a question and reports whether the answer is yes. Without a
// terminal it returns false.
func (sh *shell) confirms(question ...string) bool {
	if !sh.asks() {
		return false
	}
	question[len(question)-1] += lang.Text{EN: ". Go on? [y/N]", ZH: "。继续吗？[y/N]"}.In(sh.lang)
	var all strings.Builder
	for _, line := range question {
		said := strings.TrimLeft(line, " ")
		all.WriteString(view.Behind(line[:len(line)-len(said)], said, widthOf(sh.err)))
	}
	fmt.Fprint(sh.err, strings.TrimSuffix(all.String(), "\n")+" ")
	answer, err := bufio.NewReader(sh.in).ReadString('\n')
	if err != nil {
		fmt.Fprintln(sh.err)
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes", "是", "好":
		return true
	}
	return false
}

// call returns a call for the person at this shell: the OS user of this process.
func (sh *shell) call() (*ops.Call, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	svc, err := sh.service()
	if err != nil {
		return nil, err
	}
	call := &ops.Call{Service: svc, Who: osUser(ops.Shell), Lang: sh.lang, Dir: dir, Stdin: sh.in, Progress: sh.progress()}
	if sh.json { // JSON is printed as one document, and an endless output as JSON Lines
		call.Emit = func(v any) { _ = json.NewEncoder(sh.out).Encode(v) }
	} else {
		call.Stream, call.Width = func(text string) { fmt.Fprint(sh.out, text) }, sh.width
	}
	return call, nil
}

func osUser(s ops.Surface) ops.Caller {
	name := fmt.Sprintf("uid %d", os.Getuid()) // a user whom no name service knows must not own anything under a name
	if u, err := account.Current(context.Background()); err == nil {
		name = u.Name
	}
	return ops.Caller{Surface: s, ID: name, User: name}
}

// progress reports long work on standard error if it takes more than a second and
// standard error is a terminal.
func (sh *shell) progress() func(int, int, string) {
	if !isTerminal(sh.err) {
		return nil
	}
	start := time.Now()
	return func(done, total int, what string) {
		switch {
		case time.Since(start) <= time.Second:
		case total == 0: // the total is unknown
			fmt.Fprintln(sh.err, view.Plainly(what))
		default:
			fmt.Fprintf(sh.err, "[%d/%d] %s\n", done, total, view.Plainly(what))
		}
	}
}

// open opens the file that a flag names; - is standard input.
func (sh *shell) open(flag, file string) (io.ReadCloser, error) {
	if file == "-" {
		return io.NopCloser(sh.in), nil
	}
	fix := lang.Text{EN: "--%s - reads standard input", ZH: "--%s - 从标准输入读取"}.With(flag)
	if file == "" || strings.HasPrefix(file, "-") {
		return nil, ops.InputError(flag, lang.Text{EN: "--%s needs the name of a file", ZH: "--%s 后需要给出文件名"}.With(flag), fix)
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, ops.InputError(flag, lang.Said(err), fix)
	}
	return f, nil
}

// takeFlag takes "name value" or "name=value" out of words. The value is empty if
// nothing follows.
func takeFlag(words []string, name string) (value string, rest []string, ok bool) {
	for i, w := range words {
		if w == "--" {
			break
		}
		if w == name {
			after := words[i+1:]
			if len(after) > 0 {
				value, after = after[0], after[1:]
			}
			return value, slices.Concat(words[:i], after), true
		}
		if v, found := strings.CutPrefix(w, name+"="); found {
			return v, slices.Concat(words[:i], words[i+1:]), true
		}
	}
	return "", words, false
}

// batch answers JSON Lines with one line each, in order, whatever the lines contain. It
// succeeds once every line has its answer.
func (sh *shell) batch(op ops.Op, file string, rest []string) error {
	if op.Batch == nil {
		return &ops.Error{Code: ops.BadInput, Field: "batch", Message: lang.Text{EN: "%s has no --batch", ZH: "%s 没有 --batch"}.With(op.Name), Fix: lang.Text{EN: "plan, render, lint, diagnose and ask have one", ZH: "plan、render、lint、diagnose、ask 支持 --batch"}}
	}
	in, err := sh.open("batch", file)
	if err != nil {
		return err
	}
	defer in.Close()
	if len(rest) > 0 {
		return &ops.Error{Code: ops.BadInput, Field: rest[0], Message: lang.Text{EN: "%q cannot be combined with --batch: the lines contain everything", ZH: "--batch 之外又给出了 %q：内容应全部写在各行中"}.With(rest[0])}
	}
	if err := op.Batch(in, sh.out); err != nil {
		return &ops.Error{Code: ops.BadInput, Field: "batch", Message: lang.Said(err)}
	}
	return nil
}
