package main

import (
	"bytes"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/megatron-ops/megatron-ops/internal/config"
	"github.com/megatron-ops/megatron-ops/internal/follow"
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/ops"
	"github.com/megatron-ops/megatron-ops/internal/ops/joblogs"
	"github.com/megatron-ops/megatron-ops/internal/view"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/report"
	"github.com/megatron-ops/megatron-ops/slurm/job"
)

// Long text goes to the pager that is named, and to none if that is cat.
func TestWhichPagerIsAsked(t *testing.T) {
	for _, c := range []struct{ own, all, want string }{
		{"", "", ""}, {"", "less -R", "less -R"}, {"most", "less", "most"}, {" cat ", "less", ""}, {"", "cat", ""}, {"", " more ", "more"},
	} {
		for name, value := range map[string]string{"MEGATRON_OPS_PAGER": c.own, "PAGER": c.all} {
			t.Setenv(name, value)
			if value == "" {
				require.NoError(t, os.Unsetenv(name))
			}
		}
		require.Equal(t, c.want, pager(), c)
	}
	t.Setenv("MEGATRON_OPS_PAGER", "")
	t.Setenv("PAGER", "less")
	require.Empty(t, pager(), "who names none wants none")
}

// serve refuses to run as an account that may change everybody's jobs, unless that is
// allowed.
func TestAnAdministratorDoesNotServe(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for allowed, refused := range map[string]bool{"1": false, "": os.Geteuid() == 0, "yes": os.Geteuid() == 0} {
		t.Setenv(allowRoot, allowed)
		err := refuseAdministrator(t.Context(), config.Config{})
		require.Equal(t, refused, err != nil, allowed)
		if refused {
			require.ErrorContains(t, err, "serve does not run as root")
		}
	}
}

// Without Slack, the server's terminal shows problems of running jobs, and nothing
// else.
func TestTheServersTerminalHearsWhatGoesWrong(t *testing.T) {
	for _, c := range []struct {
		news follow.News
		says []string
	}{
		{follow.News{Job: slurm.Job{ID: "7"}}, nil},
		{follow.News{Job: slurm.Job{ID: "7", Name: "gpt"}, Alarms: []joblogs.Alarm{{ID: "hang", Node: "gpu1", What: lang.Same("No progress")}}}, []string{"No progress", "job=7", "name=gpt", "alarm=hang", "node=gpu1"}},
		{follow.News{Incident: &report.Incident{Where: "gpu1", Jobs: []string{"7", "8"}}}, []string{"gpu1"}},
	} {
		var log bytes.Buffer
		require.NoError(t, logNews(slog.New(slog.NewTextHandler(&log, nil)), lang.EN)(t.Context(), c.news))
		for _, want := range c.says {
			require.Contains(t, log.String(), want)
		}
		require.Equal(t, len(c.says) == 0, log.Len() == 0)
	}
}

// An invalid code is a typing error; a folder that is missing or cannot be written is
// the site's fault.
func TestACodeIsWrittenOrItIsSaidWhoseFaultItIs(t *testing.T) {
	dir := t.TempDir()
	const code = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	for _, c := range []struct {
		dir, code string
		fails     ops.Code
	}{{dir, code, ""}, {dir, "ABC", ops.BadInput}, {filepath.Join(dir, "nosuch"), code, ops.Failed}} {
		file := filepath.Join(t.TempDir(), "megatron-ops.yaml")
		require.NoError(t, os.WriteFile(file, []byte("slack: {link_proof: file, link_dir: "+c.dir+"}\n"), 0o600))
		t.Setenv("MEGATRON_OPS_CONFIG", file)
		var out bytes.Buffer
		err := linkCommand(t.Context(), &shell{streams: streams{out: &out}}, linkIn{c.code})
		if c.fails != "" {
			require.Equal(t, c.fails, ops.AsError(err).Code, "%v", err)
			require.Empty(t, out.String())
			continue
		}
		require.NoError(t, err)
		require.Contains(t, out.String(), "press the button in Slack")
		written, err := filepath.Glob(filepath.Join(dir, "megatron-ops-link-*"))
		require.NoError(t, err)
		require.Len(t, written, 1)
	}
}

// A profile names a cluster if the cluster has a name, or if its commands have a
// folder.
func TestWhatAProfileNames(t *testing.T) {
	t.Setenv("SLURM_CONF", "/etc/slurm/prod.conf")
	for _, c := range []struct{ name, bin, has, not string }{
		{"", "", "\nsite:\n  partition: gpu\n", "cluster"},
		{"", "/opt/slurm/bin", "slurm_bin: /opt/slurm/bin\n", "slurm_conf"},
		{"prod", "", "clusters:\n  prod:\n", "slurm_bin"},
		{"prod", "/opt/slurm/bin", "slurm_bin: /opt/slurm/bin\n", "\nsite:"},
	} {
		text, err := profile(c.name, c.bin, job.Site{Partition: "gpu"}, nil)
		require.NoError(t, err)
		require.Contains(t, string(text), c.has)
		require.Contains(t, string(text), "partition: gpu\n")
		require.NotContains(t, string(text), c.not)
	}
}

// A foldedAnswer contains more than most people want to read.
type foldedAnswer struct{}

func (foldedAnswer) View(lang.Lang) view.Doc {
	return view.Doc{Title: "done", Sections: []view.Section{{Heading: "Details", Items: []string{"of no use to most"}, Fold: true}}}
}

// Folded sections are shown on request; otherwise a line says how to see them.
func TestWhatIsFoldedIsShownWhereItIsAskedFor(t *testing.T) {
	for verbose, says := range map[bool][]string{false: {"done", "Details: 1 (-v shows them)"}, true: {"done", "of no use to most"}} {
		var out bytes.Buffer
		sh := &shell{streams: streams{out: &out}, verbose: verbose}
		require.NoError(t, sh.show(foldedAnswer{}))
		for _, words := range says {
			require.Contains(t, out.String(), words)
		}
		require.Equal(t, verbose, strings.Contains(out.String(), "of no use"))
	}
}

// GPU hours have one decimal place at most.
func TestGPUHoursAreRounded(t *testing.T) {
	for v, want := range map[float64]string{2.6666666666666665: "2.7", 64: "64", math.Inf(1): "∞"} {
		require.Equal(t, want, hoursOf(v))
	}
}
