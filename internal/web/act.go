package web

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/consent"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/operations"
	"github.com/megatron-ops/megatron-ops/internal/view"
)

// actions are the operations that the page offers. Each needs a confirmation. The ones
// with a specification start from that of a job.
var actions = []string{"cancel", "hold", "release", "requeue", "submit"}

// A confirmPage asks for a confirmation.
type confirmPage struct {
	Op, Cluster string
	Words       []string
	Sections    []view.Section
	Digest      string
	Held        string // why an operator must decide instead
	Result      *view.Doc
	Back        string
}

// requestedCall reads the call that a form names.
func (v *visit) requestedCall() (op ops.Op, in any, words []string, cluster string, err error) {
	if err := v.r.ParseForm(); err != nil {
		return op, nil, nil, "", ops.InputError("form", lang.Same(err.Error()), lang.Text{EN: "go back, and press the button again", ZH: "请返回后重新点击按钮"})
	}
	name := v.r.Form.Get("op")
	op, ok := operations.Lookup(name)
	if !ok || !slices.Contains(actions, name) {
		return op, nil, nil, "", ops.NotFoundError("op", textNoSuchAct.With(name), lang.Same(strings.Join(actions, ", ")))
	}
	in, words, cluster = op.NewIn(), v.r.Form["word"], v.r.Form.Get("cluster")
	err = v.readInput(op, in, cluster, words)
	return op, in, words, cluster, err
}

// confirm shows everything that a call would do, with one button.
func (v *visit) confirm() error {
	op, in, words, cluster, err := v.requestedCall()
	if err != nil {
		return err
	}
	r, stop, err := consent.Of(v.r.Context(), v.call(), op, in)
	if err != nil {
		return err
	}
	_, back, _ := strings.Cut(v.r.Referer(), "/web/")
	p := confirmPage{Op: op.Name, Cluster: cluster, Words: words, Back: localPath("/web/" + back)}
	if shown, ok := stop.(view.Viewer); ok { // the call would do nothing
		doc := shown.View(v.lang)
		p.Result = &doc
	} else {
		p.Sections, p.Digest, p.Held = r.Sections(v.lang), r.Agreement(), v.approvalReason(op, in)
	}
	v.page(http.StatusOK, "confirm", pageData{Title: lang.Capital(op.Name), Here: "jobs", Body: p})
	return nil
}

// approvalReason returns why an operator must decide about a call, or "" if nobody
// must.
func (v *visit) approvalReason(op ops.Op, in any) string {
	if v.s.cfg.Held == nil || v.who.Operator {
		return ""
	}
	return v.s.cfg.Held(v.call(), op.Name, in).In(v.lang)
}

// execute runs what was agreed to, with the script that was shown.
func (v *visit) execute() error {
	op, in, words, cluster, err := v.requestedCall()
	if err != nil {
		return err
	}
	call := v.call()
	consent.Agree(call, v.r.PostForm.Get("digest"))
	if why := v.approvalReason(op, in); why != "" {
		r, _, err := consent.Of(v.r.Context(), v.call(), op, in)
		if err != nil {
			return err
		}
		// The call is confirmed for what the operator has seen, whatever the form says.
		approved, err := r.Approved(v.r.Context(), call, in, why)
		if err != nil {
			return err
		}
		if !approved {
			v.page(
				http.StatusAccepted,
				"held",
				pageData{Title: textAskedOperators.In(v.lang), Here: "jobs", Body: confirmPage{Op: op.Name, Cluster: cluster, Words: words, Held: why}},
			)
			return nil
		}
	}
	out, err := op.Run(v.r.Context(), call, in)
	if err != nil {
		return err
	}
	shown, ok := out.(view.Viewer)
	if !ok {
		return textNoAnswer.Err(op.Name)
	}
	doc := shown.View(v.lang)
	v.page(http.StatusOK, "confirm", pageData{Title: doc.Title, Here: "jobs", Body: confirmPage{Op: op.Name, Result: &doc, Back: "/web/jobs"}})
	return nil
}

var errOperatorsOnly = &ops.Error{Code: ops.NotAllowed, Message: textOperatorsOnly, Fix: textOperatorsOnlyFix}

// approvals shows the requests of agents and people that wait for an operator.
func (v *visit) approvals() error {
	if !v.who.Operator {
		return errOperatorsOnly
	}
	waiting, err := v.s.cfg.Service.Approvals(v.r.Context())
	if err != nil {
		return err
	}
	v.page(http.StatusOK, "approvals", pageData{Title: textApprovals.In(v.lang), Here: "approvals", Body: waiting})
	return nil
}

// decide records an operator's decision.
func (v *visit) decide() error {
	if !v.who.Operator {
		return errOperatorsOnly
	}
	yes := v.r.PostFormValue("decision") == "approve"
	if _, err := v.s.cfg.Service.Decide(v.r.Context(), v.r.PathValue("id"), v.who, v.who.User, yes, v.r.PostFormValue("reason")); err != nil {
		return err
	}
	http.Redirect(v.w, v.r, "/web/approvals", http.StatusSeeOther)
	return nil
}

// nodes shows the answers of two operations.
func (v *visit) nodes() error {
	var docs []view.Doc
	cluster := v.r.URL.Query().Get("cluster")
	for _, name := range []string{"nodes", "partitions"} {
		shown, err := runAs[view.Viewer](v, cluster, name)
		if err != nil {
			return err
		}
		docs = append(docs, shown.View(v.lang))
	}
	v.page(http.StatusOK, "documents", pageData{Title: textNodes.In(v.lang), Here: "nodes", Body: docs})
	return nil
}

// A usagePage is the usage, and the choices that led to it.
type usagePage struct {
	Docs           []view.Doc
	Of, By, Days   string
	Accounts       []string
	AllBy, AllDays []string
	Cluster        string
	Clusters       []string
}

// usage shows what the visitor, an account or everybody used, grouped as chosen.
func (v *visit) usage() error {
	q := v.r.URL.Query()
	p := usagePage{
		Cluster: cmp.Or(q.Get("cluster"), v.s.cfg.Service.Default), Clusters: v.clusters(),
		Of: cmp.Or(q.Get("of"), "mine"), By: cmp.Or(q.Get("by"), "user"), Days: cmp.Or(q.Get("days"), "7"),
		AllBy: []string{"user", "account", "partition", "qos", "name", "state", "day", "week", "month"}, AllDays: []string{"1", "7", "30", "90"},
	}
	p.Accounts = v.accounts(p.Cluster)
	history, err := runAs[view.Viewer](v, p.Cluster, "history", append(userWords(p.Of), "--days="+p.Days, "--by="+p.By)...)
	if err != nil {
		return err
	}
	p.Docs = append(p.Docs, history.View(v.lang))
	v.page(http.StatusOK, "usage", pageData{Title: textUsage.In(v.lang), Here: "usage", Body: p})
	return nil
}
