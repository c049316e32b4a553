package web

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net/http"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/ops/joblogs"
)

const (
	// streamPause is the time between two polls of a stream. The views behind it answer
	// all readers with few queries.
	streamPause = 3 * time.Second
	// streamLife ends a stream, after which a browser opens another, so that nothing is
	// polled longer for a visitor who has left.
	streamLife = 10 * time.Minute
)

// stream sends the browser a state whenever it changes.
func (v *visit) stream(state func() (any, error)) error {
	select {
	case v.s.streams <- struct{}{}:
		defer func() { <-v.s.streams }()
	default:
		v.w.Header().Set("Retry-After", "60")
		http.Error(v.w, "too many streams are open", http.StatusServiceUnavailable)
		return nil
	}
	out := http.NewResponseController(v.w)
	v.w.Header().Set("Content-Type", "text/event-stream")
	last := ""
	end := time.After(streamLife)
	for {
		_, ok, err := v.s.caller(v.r)
		if err == nil && !ok {
			return nil // signed out or unlinked meanwhile
		}
		var now any
		if err == nil { // else nobody knows whose right to the state ends
			now, err = state()
		}
		if err != nil {
			now = map[string]string{"problem": err.Error()}
		}
		raw, err := json.Marshal(now)
		if err != nil {
			return err
		}
		line := ": \n\n" // keeps the connection open, and detects a closed one
		if string(raw) != last {
			last = string(raw)
			line = fmt.Sprintf("data: %s\n\n", raw)
		}
		if _, err := v.w.Write([]byte(line)); err != nil {
			return nil //nolint:nilerr // the browser has left
		}
		if err := out.Flush(); err != nil {
			return nil //nolint:nilerr // the browser has left
		}
		select {
		case <-v.r.Context().Done():
			return nil
		case <-end:
			return nil
		case <-time.After(streamPause):
		}
	}
}

// jobsStream reports when the list has changed.
func (v *visit) jobsStream() error {
	return v.stream(func() (any, error) {
		p, err := v.chosenJobs()
		if err != nil {
			return nil, err
		}
		sum := fnv.New64a()
		for _, j := range p.Jobs {
			fmt.Fprintln(sum, j.ID, j.State, j.Reason, len(j.Nodes))
		}
		return map[string]any{"rows": fmt.Sprint(sum.Sum64()), "counts": p.Counts}, nil
	})
}

// jobStream reports when a job's state has changed, or its logs have grown.
func (v *visit) jobStream() error {
	cluster, id := v.jobInPath()
	return v.stream(func() (any, error) {
		j, paths, err := joblogs.Files(v.r.Context(), v.call().Reading(), cluster, id)
		if err != nil {
			return nil, err
		}
		return map[string]any{"state": j.State, "reason": j.Reason, "bytes": joblogs.Bytes(v.call().Reading(), j, paths)}, nil
	})
}

// json answers a script of the page.
func (v *visit) json(status int, body any) {
	v.w.Header().Set("Content-Type", "application/json")
	v.w.WriteHeader(status)
	_ = json.NewEncoder(v.w).Encode(body) // a failed write means that the browser is gone
}
