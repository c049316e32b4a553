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

// A jobsPage is a page of jobs, and the choices that led to it.
type jobsPage struct {
	Clusters []string
	Cluster  string
	Of       string   // mine, all, account:NAME, or a user
	Accounts []string // the visitor's accounts
	State    string   // running, waiting, ended, or empty
	Find     string
	Jobs     []slurm.Job
	Lacks    string // why ended jobs are missing; empty where they are not
	All      int    // number of matching jobs
	Page     int
	Last     int
	Query    url.Values
	Counts   map[string]int
}

// Before is the previous page's address.
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
	words := userWords(p.Of)
	if p.State == "ended" || p.State == "" {
		words = append(words, "--all")
	}
	list, err := runAs[jobcontrol.ListOut](v, p.Cluster, "list", words...)
	if err != nil {
		return p, err
	}
	p.Lacks = list.Lacks().In(v.lang)
	find := strings.ToLower(p.Find)
	for _, j := range list.Jobs {
		group := groupOf(j)
		p.Counts[group]++
		if p.State != "" && p.State != group || find != "" && !matches(j, find) {
			continue
		}
		p.Jobs = append(p.Jobs, j)
	}
	// Running jobs, then waiting, then ended ones; each newest first.
	slices.SortStableFunc(p.Jobs, func(a, b slurm.Job) int { return groupOrder[groupOf(a)] - groupOrder[groupOf(b)] })
	p.All = len(p.Jobs)
	p.Last = max(1, (p.All+perPage-1)/perPage)
	p.Page = min(p.Page, p.Last)
	p.Jobs = p.Jobs[(p.Page-1)*perPage : min(p.All, p.Page*perPage)]
	return p, nil
}

// userWords returns the words of list and history that choose whose jobs to show.
func userWords(of string) []string {
	account, is := strings.CutPrefix(of, "account:")
	switch {
	case is:
		return []string{"--user=all", "--account=" + account}
	case of == "mine":
		return []string{}
	}
	return []string{"--user=" + of} // all, or a user's name
}

// accountsKept is how long a user's accounts are cached.
const accountsKept = 5 * time.Minute

// A userAccounts is a cached answer about a user's accounts.
type userAccounts struct {
	names []string
	until time.Time
}

// accounts returns the visitor's accounts on a cluster, or none if the cluster has no
// accounting.
func (v *visit) accounts(cluster string) []string {
	key, now := cluster+"/"+v.who.User, v.s.cfg.Service.Now()
	v.s.accountsMu.Lock()
	known, ok := v.s.accounts[key]
	v.s.accountsMu.Unlock()
	if ok && now.Before(known.until) {
		return known.names
	}
	known = userAccounts{until: now.Add(accountsKept)}
	if a, err := runAs[jobcontrol.AccountsOut](v, cluster, "accounts"); err == nil {
		for _, one := range a.Accounts {
			known.names = append(known.names, one.Account)
		}
	}
	slices.Sort(known.names)
	known.names = slices.Compact(known.names)
	v.s.accountsMu.Lock()
	v.s.accounts[key] = known
	v.s.accountsMu.Unlock()
	return known.names
}

var groupOrder = map[string]int{"running": 0, "waiting": 1, "ended": 2}

// groupOf returns the group of jobs that j belongs to.
func groupOf(j slurm.Job) string {
	switch {
	case j.State.Ended():
		return "ended"
	case j.State == slurm.Pending:
		return "waiting"
	}
	return "running"
}

// matches reports whether a job's id, name or other words contain text, which is in
// lower case.
func matches(j slurm.Job, text string) bool {
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
	return v.pageOrPart("jobs", "jobrows", pageData{Title: textJobs.In(v.lang), Here: "jobs", Body: p})
}
