package web

import (
	"cmp"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/ops/jobcontrol"
	"github.com/megatron-ops/megatron-ops/slurm"
)

// perPage is how many jobs a page shows.
const perPage = 50

// A jobsPage is a page of jobs, and what was chosen.
type jobsPage struct {
	Clusters []string
	Cluster  string
	Of       string   // mine, all, account:NAME, or a user
	Accounts []string // the visitor's: what their team runs
	State    string   // running, waiting, ended, or empty
	Find     string
	Jobs     []slurm.Job
	All      int // that fit
	Page     int
	Last     int
	Query    url.Values
	Counts   map[string]int
}

// Before and After are the addresses of the pages beside this one.
func (p jobsPage) Before() string { return p.at(p.Page - 1) }

// After is the next page's address.
func (p jobsPage) After() string { return p.at(p.Page + 1) }

func (p jobsPage) at(page int) string {
	q := maps.Clone(p.Query)
	q.Set("page", strconv.Itoa(page))
	return "/web/jobs?" + q.Encode()
}

func (v *visit) toJobs() error {
	http.Redirect(v.w, v.r, "/web/jobs", http.StatusSeeOther)
	return nil
}

// chosenJobs are the jobs that the page's address asks for.
func (v *visit) chosenJobs() (p jobsPage, err error) {
	q := v.r.URL.Query()
	p = jobsPage{
		Clusters: v.clusters(), Cluster: cmp.Or(q.Get("cluster"), v.s.cfg.Service.Default), Of: cmp.Or(q.Get("of"), "mine"),
		State: q.Get("state"), Find: q.Get("find"), Query: q, Page: 1, Counts: map[string]int{},
	}
	if n, err := strconv.Atoi(q.Get("page")); err == nil && n > 0 {
		p.Page = n
	}
	p.Accounts = v.accounts(p.Cluster)
	words := whose(p.Of)
	if p.State == "ended" || p.State == "" {
		words = append(words, "--all")
	}
	out, err := v.runOn(p.Cluster, "list", words...)
	if err != nil {
		return p, err
	}
	list, ok := out.(jobcontrol.ListOut)
	if !ok {
		return p, nil
	}
	find := strings.ToLower(p.Find)
	for _, j := range list.Jobs {
		group := groupOf(j)
		p.Counts[group]++
		if p.State != "" && p.State != group || find != "" && !holds(j, find) {
			continue
		}
		p.Jobs = append(p.Jobs, j)
	}
	// What runs, then what waits, then what ended; each newest first.
	slices.SortStableFunc(p.Jobs, func(a, b slurm.Job) int { return order[groupOf(a)] - order[groupOf(b)] })
	p.All = len(p.Jobs)
	p.Last = max(1, (p.All+perPage-1)/perPage)
	p.Page = min(p.Page, p.Last)
	p.Jobs = p.Jobs[(p.Page-1)*perPage : min(p.All, p.Page*perPage)]
	return p, nil
}

// whose are the words of list and history that choose whose jobs are meant.
func whose(of string) []string {
	account, is := strings.CutPrefix(of, "account:")
	switch {
	case is:
		return []string{"--user=all", "--account=" + account}
	case of == "mine":
		return []string{}
	}
	return []string{"--user=" + of} // all, or a user's name
}

// accountsKept is how long the accounts of a user are taken to stay.
const accountsKept = 5 * time.Minute

// A userAccounts is what a cluster has said of a user's accounts.
type userAccounts struct {
	names []string
	until time.Time
}

// accounts are the visitor's on a cluster; none where it keeps none.
func (v *visit) accounts(cluster string) []string {
	key, now := cluster+"/"+v.who.User, v.s.cfg.Service.Now()
	v.s.accountsMu.Lock()
	known, ok := v.s.accounts[key]
	v.s.accountsMu.Unlock()
	if ok && now.Before(known.until) {
		return known.names
	}
	known = userAccounts{until: now.Add(accountsKept)}
	if out, err := v.runOn(cluster, "accounts"); err == nil {
		if a, ok := out.(jobcontrol.AccountsOut); ok {
			for _, one := range a.Accounts {
				known.names = append(known.names, one.Account)
			}
		}
	}
	slices.Sort(known.names)
	known.names = slices.Compact(known.names)
	v.s.accountsMu.Lock()
	v.s.accounts[key] = known
	v.s.accountsMu.Unlock()
	return known.names
}

var order = map[string]int{"running": 0, "waiting": 1, "ended": 2}

// groupOf is which of the three kinds of jobs j is of.
func groupOf(j slurm.Job) string {
	switch {
	case j.State.Ended():
		return "ended"
	case j.State == slurm.Pending:
		return "waiting"
	}
	return "running"
}

// holds reports whether a job is named by text, in small letters.
func holds(j slurm.Job, text string) bool {
	return slices.ContainsFunc([]string{string(j.ID), j.Name, j.User, j.Partition, string(j.State), strings.Join(j.Nodes, " ")}, func(of string) bool {
		return strings.Contains(strings.ToLower(of), text)
	})
}

func (v *visit) clusters() []string { return slices.Sorted(maps.Keys(v.s.cfg.Service.Clusters)) }

func (v *visit) jobs() error {
	p, err := v.chosenJobs()
	if err != nil {
		return err
	}
	if v.r.Header.Get("X-Part") != "" {
		return v.partly("jobrows", p)
	}
	v.page(http.StatusOK, "jobs", pageOf{Title: textJobs.In(v.lang), Here: "jobs", Body: p})
	return nil
}
