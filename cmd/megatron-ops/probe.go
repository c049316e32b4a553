package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/cluster"
	"github.com/megatron-ops/megatron-ops/slurm/job/detect"
)

// probeTimeout bounds a probe: Slurm's commands wait long for a controller that does
// not answer.
const probeTimeout = 15 * time.Second

// A probeFailure is a reason for which some probes returned nothing.
type probeFailure struct {
	why    lang.Text
	probes []detect.Probe
}

// message says the reason, then what stays unknown because of it.
func (s probeFailure) message() lang.Text {
	var en, zh []string
	for _, p := range s.probes {
		en, zh = append(en, p.Tells.EN), append(zh, p.Tells.ZH)
	}
	return lang.Text{EN: s.why.EN + "; not known: " + strings.Join(en, ", "), ZH: s.why.ZH + "；无法得知：" + strings.Join(zh, "、")}
}

// programs lists the programs that the probes run, each once.
func programs(probes []detect.Probe) string {
	var names []string
	for _, p := range probes {
		if !slices.Contains(names, p.Argv[0]) {
			names = append(names, p.Argv[0])
		}
	}
	return strings.Join(names, ", ")
}

// runProbes runs all probes at once, so that several that hang cost one timeout. It
// returns what each probe printed and why others returned nothing.
func runProbes(
	ctx context.Context, probes []detect.Probe, run func(context.Context, []string) (string, lang.Text),
) (printed map[string]string, silent []probeFailure) {
	type answer struct {
		text string
		why  lang.Text
	}
	answers := make([]answer, len(probes))
	var asking sync.WaitGroup
	for i, p := range probes {
		asking.Go(func() { answers[i].text, answers[i].why = run(ctx, p.Argv) })
	}
	asking.Wait()
	printed = map[string]string{}
	for i, p := range probes {
		a := answers[i]
		printed[p.Name] = a.text
		if a.why == (lang.Text{}) {
			continue
		}
		at := slices.IndexFunc(silent, func(s probeFailure) bool { return s.why == a.why })
		if at < 0 {
			at, silent = len(silent), append(silent, probeFailure{why: a.why})
		}
		silent[at].probes = append(silent[at].probes, p)
	}
	return printed, silent
}

// runProbe runs one command and returns what it printed, or why it printed nothing. A
// command that fails silently has no reason.
func runProbe(ctx context.Context, argv []string) (string, lang.Text) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = cluster.JobEnviron(os.Environ())
	cmd.WaitDelay = time.Second
	var out, words bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &words
	err := cmd.Run()
	switch {
	case err == nil || out.Len() > 0:
		return out.String(), lang.Text{}
	case ctx.Err() != nil:
		return "", lang.Text{EN: "no answer in %s", ZH: "%s 内没有回答"}.With(probeTimeout)
	case words.Len() > 0:
		return "", slurm.FromStderr(argv[0], words.String()).Msg
	}
	return "", lang.Text{}
}
