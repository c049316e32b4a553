package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/account"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/view"
)

// operation runs one row of the table for the person at this shell.
func (sh *shell) operation(ctx context.Context, op ops.Op, words []string) error {
	if file, rest, ok := takeFlag(words, "--batch"); ok {
		return sh.batch(op, file, rest)
	}
	in := op.NewIn()
	if err := op.Words(in, words); err != nil {
		return err
	}
	if w, ok := in.(interface{ On(cluster string) }); ok && sh.cluster != "" {
		w.On(sh.cluster)
	}
	call, err := sh.call()
	if err != nil {
		return err
	}
	var left []func() error
	call.AtEnd = func(f func() error) { left = append(left, f) }
	out, err := op.Run(ctx, call, in)
	asked := false
	if e := ops.AsError(err); e != nil && e.Confirm {
		if asked = true; sh.asks(e) {
			call.Confirmed, asked = true, false
			out, err = op.Run(ctx, call, in)
		}
	}
	if err != nil && ctx.Err() != nil && (asked || op.Effect == ops.Read) { // nothing was changed
		return context.Cause(ctx)
	}
	if err == nil {
		err = sh.show(out)
	}
	for _, f := range left {
		if e := f(); e != nil {
			fmt.Fprintln(sh.err, "megatron-ops:", view.Plainly(ops.Said(e).In(sh.lang)))
		}
	}
	return err
}

// asks puts e's question to the person, where there is one to answer.
func (sh *shell) asks(e *ops.Error) bool {
	if !isTerminal(sh.in) || sh.json {
		return false
	}
	fmt.Fprintf(sh.err, "%s%s ", view.Plainly(e.Message.In(sh.lang)), lang.Text{EN: ". Go on? [y/N]", ZH: "。继续吗？[y/N]"}.In(sh.lang))
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

// call is the person at this shell: the OS user of this process.
func (sh *shell) call() (*ops.Call, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	svc, err := sh.service(dir)
	if err != nil {
		return nil, err
	}
	call := &ops.Call{Service: svc, Who: osUser(ops.Shell), Lang: sh.lang, Dir: dir, Stdin: sh.in, Progress: sh.progress()}
	if sh.json { // a document comes as a whole, and what has no end in lines
		call.Emit = func(v any) { _ = json.NewEncoder(sh.out).Encode(v) }
	} else {
		call.Stream = func(text string) { fmt.Fprint(sh.out, text) }
	}
	return call, nil
}

// osUser is the caller that one person on one machine is.
func osUser(s ops.Surface) ops.Caller {
	name := fmt.Sprintf("uid %d", os.Getuid()) // whom no name service knows owns nothing under a name
	if u, err := account.Current(context.Background()); err == nil {
		name = u.Name
	}
	return ops.Caller{Surface: s, ID: name, User: name}
}

// progress tells of long work on standard error, when it does take long and
// somebody watches.
func (sh *shell) progress() func(int, int, string) {
	if !isTerminal(sh.err) {
		return nil
	}
	start := time.Now()
	return func(done, total int, what string) {
		if time.Since(start) > time.Second {
			fmt.Fprintf(sh.err, "[%d/%d] %s\n", done, total, view.Plainly(what))
		}
	}
}

// takeFlag takes "name value" or "name=value" out of words.
func takeFlag(words []string, name string) (value string, rest []string, ok bool) {
	for i, w := range words {
		if w == "--" {
			break
		}
		if w == name && i+1 < len(words) {
			return words[i+1], append(append([]string{}, words[:i]...), words[i+2:]...), true
		}
		if v, found := strings.CutPrefix(w, name+"="); found {
			return v, append(append([]string{}, words[:i]...), words[i+1:]...), true
		}
	}
	return "", words, false
}

// batch answers JSON Lines, one line for each, in order, whatever the lines
// hold. It ends with 0 once every line has its answer.
func (sh *shell) batch(op ops.Op, file string, rest []string) error {
	if op.Batch == nil {
		return &ops.Error{Code: ops.BadInput, Field: "batch", Message: lang.Text{EN: "%s has no --batch", ZH: "%s 没有 --batch"}.With(op.Name), Fix: lang.Text{EN: "plan, render, lint, diagnose and ask have one", ZH: "plan、render、lint、diagnose、ask 支持 --batch"}}
	}
	if len(rest) > 0 {
		return &ops.Error{Code: ops.BadInput, Field: rest[0], Message: lang.Text{EN: "%q beside --batch: the lines say everything", ZH: "--batch 之外又给出了 %q：内容应全部写在各行中"}.With(rest[0])}
	}
	in := sh.in
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return &ops.Error{Code: ops.BadInput, Field: "batch", Message: ops.Said(err), Fix: lang.Text{EN: "--batch - reads standard input", ZH: "--batch - 从标准输入读取"}}
		}
		defer f.Close()
		in = f
	}
	if err := op.Batch(in, sh.out); err != nil {
		return &ops.Error{Code: ops.BadInput, Field: "batch", Message: ops.Said(err)}
	}
	return nil
}
