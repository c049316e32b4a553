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

// acts are the operations that the page offers, all of which are asked about
// first. What takes a specification begins with that of a job.
var acts = []string{"cancel", "hold", "release", "requeue", "submit"}

// A confirmPage asks for a yes.
type confirmPage struct {
	Op, Cluster string
	Words       []string
	Sections    []view.Section
	Digest      string
	Held        string // why an operator must decide instead
	Result      *view.Doc
	Back        string
}

// asked is the call that a form names.
func (v *visit) asked() (op ops.Op, in any, words []string, cluster string, err error) {
	if err := v.r.ParseForm(); err != nil {
		return op, nil, nil, "", ops.InputError("form", lang.Same(err.Error()), lang.Text{EN: "go back, and press the button again", ZH: "请返回后重新点击按钮"})
	}
	name := v.r.Form.Get("op")
	op, ok := operations.Lookup(name)
	if !ok || !slices.Contains(acts, name) {
		return op, nil, nil, "", ops.NotFoundError("op", textNoSuchAct.With(name), lang.Same(strings.Join(acts, ", ")))
	}
	in, words, cluster = op.NewIn(), v.r.Form["word"], v.r.Form.Get("cluster")
	err = v.filled(op, in, cluster, words)
	return op, in, words, cluster, err
}

// confirm shows all of what a call would do, with one button.
func (v *visit) confirm() error {
	op, in, words, cluster, err := v.asked()
	if err != nil {
		return err
	}
	r, stop, err := consent.Of(v.r.Context(), v.call(), op, in)
	if err != nil {
		return err
	}
	p := confirmPage{Op: op.Name, Cluster: cluster, Words: words, Back: within(v.r.Referer())}
	if i := strings.Index(v.r.Referer(), "/web/"); i >= 0 {
		p.Back = within(v.r.Referer()[i:])
	}
	if shown, ok := stop.(view.Viewer); ok { // it would come to nothing
		doc := shown.View(v.lang)
		p.Result = &doc
	} else {
		p.Sections, p.Digest, p.Held = r.Sections(v.lang), r.Digest, v.held(op, in)
	}
	v.page(http.StatusOK, "confirm", pageOf{Title: lang.Capital(op.Name), Here: "jobs", Body: p})
	return nil
}

// held is why an operator must decide about a call; empty: nobody must.
func (v *visit) held(op ops.Op, in any) string {
	if v.s.cfg.Held == nil || v.who.Operator {
		return ""
	}
	return v.s.cfg.Held(op.Name, in).In(v.lang)
}

// do carries out what was agreed to, with the script that was shown.
func (v *visit) do() error {
	op, in, words, cluster, err := v.asked()
	if err != nil {
		return err
	}
	call := v.call()
	call.Confirmed, call.Agreed = true, v.r.PostForm.Get("digest")
	if why := v.held(op, in); why != "" {
		r, _, err := consent.Of(v.r.Context(), v.call(), op, in)
		if err != nil {
			return err
		}
		by, err := v.s.cfg.Service.Approved(v.r.Context(), v.who, op.Name, in, why, r.Sections(lang.EN), r.Digest)
		if err != nil {
			return err
		}
		if by == "" {
			v.page(
				http.StatusAccepted,
				"held",
				pageOf{Title: textAskedOperators.In(v.lang), Here: "jobs", Body: confirmPage{Op: op.Name, Cluster: cluster, Words: words, Held: why}},
			)
			return nil
		}
		call.Agreed, call.AgreedBy = r.Digest, by // what the operator has seen, whatever the form says
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
	v.page(http.StatusOK, "confirm", pageOf{Title: doc.Title, Here: "jobs", Body: confirmPage{Op: op.Name, Result: &doc, Back: "/web/jobs"}})
	return nil
}

// approvals are the agents' and people's requests that wait for an operator.
func (v *visit) approvals() error {
	if !v.who.Operator {
		return &ops.Error{Code: ops.NotAllowed, Message: textOperatorsOnly, Fix: textOperatorsOnlyFix}
	}
	waiting, err := v.s.cfg.Service.Approvals(v.r.Context())
	if err != nil {
		return err
	}
	v.page(http.StatusOK, "approvals", pageOf{Title: textApprovals.In(v.lang), Here: "approvals", Body: waiting})
	return nil
}

// decide writes an operator's decision down.
func (v *visit) decide() error {
	if !v.who.Operator {
		return &ops.Error{Code: ops.NotAllowed, Message: textOperatorsOnly, Fix: textOperatorsOnlyFix}
	}
	yes := v.r.PostFormValue("decision") == "approve"
	if _, err := v.s.cfg.Service.Decide(v.r.Context(), v.r.PathValue("id"), v.who, v.who.User, yes, v.r.PostFormValue("reason")); err != nil {
		return err
	}
	http.Redirect(v.w, v.r, "/web/approvals", http.StatusSeeOther)
	return nil
}

// nodes are two operations' answers.
func (v *visit) nodes() error {
	return v.documents("nodes", textNodes, [][]string{{"nodes"}, {"partitions"}})
}

// A usagePage is what was used, and what was chosen.
type usagePage struct {
	Docs           []view.Doc
	Of, By, Days   string
	Accounts       []string
	AllBy, AllDays []string
	Cluster        string
	Clusters       []string
}

// usage is what somebody, an account or everybody used, by what the hours are asked
// for.
func (v *visit) usage() error {
	q := v.r.URL.Query()
	p := usagePage{
		Cluster: cmp.Or(q.Get("cluster"), v.s.cfg.Service.Default), Clusters: v.clusters(),
		Of: cmp.Or(q.Get("of"), "mine"), By: cmp.Or(q.Get("by"), "user"), Days: cmp.Or(q.Get("days"), "7"),
		AllBy: []string{"user", "account", "partition", "qos", "name", "state", "day", "week", "month"}, AllDays: []string{"1", "7", "30", "90"},
	}
	p.Accounts = v.accounts(p.Cluster)
	out, err := v.runOn(p.Cluster, "history", append(whose(p.Of), "--days="+p.Days, "--by="+p.By)...)
	if err != nil {
		return err
	}
	if shown, ok := out.(view.Viewer); ok {
		p.Docs = append(p.Docs, shown.View(v.lang))
	}
	v.page(http.StatusOK, "usage", pageOf{Title: textUsage.In(v.lang), Here: "usage", Body: p})
	return nil
}

func (v *visit) documents(here string, title lang.Text, commands [][]string) error {
	var docs []view.Doc
	cluster := v.r.URL.Query().Get("cluster")
	for _, c := range commands {
		out, err := v.runOn(cluster, c[0], c[1:]...)
		if err != nil {
			return err
		}
		if shown, ok := out.(view.Viewer); ok {
			docs = append(docs, shown.View(v.lang))
		}
	}
	v.page(http.StatusOK, "documents", pageOf{Title: title.In(v.lang), Here: here, Body: docs})
	return nil
}
