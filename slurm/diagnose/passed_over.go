package diagnose

import (
	"slices"

	"github.com/megatron-ops/megatron-ops/slurm/diagnose/logline"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/pattern"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/scan"
)

// passedOver returns the errors that a reader of the log may take for the cause, although their process, or
// the script with its next program, went on: at most three, those that say most, in the order of the log. A
// message that several ranks wrote counts once.
func (j *job) passedOver(v verdict) []report.PassedOver {
	told := map[string]bool{} // the forms of the messages that are the cause, or among errs
	for _, e := range slices.Concat(v.others, []*scan.Event{v.eventOrEmpty()}) {
		told[logline.Template(e.Text)] = true
	}
	var errs []*scan.Event
	for _, e := range j.events {
		if e == v.event || e.Agent || e.Superseded || e.Weight < pattern.Death || scan.IsEnd(e.Class) || e.Kind == "" && e.Form != pattern.Statement {
			continue
		}
		form := logline.Template(e.Text)
		if !told[form] && (j.after(e) == wentOn || j.survived(e) || slices.Contains(j.ofEarlier, e)) {
			told[form] = true
			errs = append(errs, e)
		}
	}
	slices.SortStableFunc(errs, func(a, b *scan.Event) int { return b.Weight - a.Weight })
	errs = errs[:min(3, len(errs))]
	slices.SortStableFunc(errs, func(a, b *scan.Event) int {
		if a.File != b.File {
			return a.File - b.File
		}
		return int(a.Off - b.Off)
	})
	var all []report.PassedOver
	for _, e := range errs {
		all = append(all, j.whatFollowed(e, v))
	}
	return all
}

// whatFollowed describes an error by its place and by what its file holds from there to the cause, or to the
// end if the cause is elsewhere.
func (j *job) whatFollowed(e *scan.Event, v verdict) report.PassedOver {
	log, f := j.src.Logs[e.File], j.files[e.File]
	name, no := log.Place(e.Off)
	p := report.PassedOver{File: name, LineNo: no, Text: logline.Show(e.Raw)}
	if e.Rank >= 0 {
		p.Rank = &e.Rank
	}
	end := int64(0)
	for _, m := range f.LastBy {
		end = max(end, m.Off)
	}
	if v.event != nil && v.event.File == e.File && v.event.Off > e.Off {
		end = v.event.Off
	}
	_, last := log.Place(end)
	p.Lines = max(0, last-no)
	for _, m := range f.Progress {
		if m.Off > e.Off && m.Off < end {
			p.Iterations++
		}
	}
	return p
}
