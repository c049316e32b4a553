package script

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/stretchr/testify/require"
)

// edgeReadings are functions that describe the reading of one input, by the first word
// of its line in testdata/edges.txt.
var edgeReadings = map[string]func(in string) string{
	// The branch that a condition selects in a job of four nodes.
	"if": func(in string) string {
		return given("#!/bin/bash\n#SBATCH -N 4\nif " + in + "; then prog then; else prog else; fi\n")
	},
	// The branch that a condition on variables of Slurm selects in an array of four jobs of 16 tasks.
	"task": func(in string) string {
		return given("#!/bin/bash\n#SBATCH -N 4 -n 16 -c 6 --ntasks-per-node=4 --gpus-per-node=h100:8 --array=0-3\nif " + in + "; then prog then; else prog else; fi\n")
	},
	// The range of a word's value in that job.
	"span": func(in string) string {
		j := Read("", []byte("#!/bin/bash\n#SBATCH -N 4 -n 16 -c 6 --gpus-per-node=h100:8 --array=0-20%2\nprog "+in+"\n")).Jobs[0]
		s, known := j.Span(j.Commands[len(j.Commands)-1].Args[1].Value)
		return fmt.Sprintf("%d to %d %t", s.Lo, s.Hi, known)
	},
	// The places at which a command ends too early.
	"break": func(in string) string {
		var all []string
		for _, b := range Read("", []byte(in+"\n")).Jobs[0].Breaks {
			all = append(all, fmt.Sprintf("%d %q", b.Line, b.Text))
		}
		return strings.Join(all, ", ")
	},
	// The working directory of the last program.
	"cd": func(in string) string {
		commands := Read("", []byte(in+"; prog\n")).Jobs[0].Commands
		return word(commands[len(commands)-1].Env.Dir)
	},
	// The references that the words of all commands depend on.
	"refs": func(in string) string {
		var names []string
		for _, c := range Read("", []byte(in+"\n")).Jobs[0].Commands {
			for _, a := range c.Args {
				for _, r := range a.Value.Refs() {
					names = append(names, r.Source)
				}
			}
		}
		return strings.Join(names, " ")
	},
	// The nodes, GPUs and tasks that the options of a directive request.
	"count":  func(in string) string { return counts(Read("", []byte("#!/bin/bash\n#SBATCH "+in+"\n")).Jobs[0]) },
	"salloc": func(in string) string { return counts(Read("", []byte("salloc "+in+"\n")).Jobs[0]) },
	// The options of a directive, and why sbatch rejects it.
	"directive": func(in string) string {
		j := Read("", []byte("#!/bin/bash\n#SBATCH "+in+"\n")).Jobs[0]
		d := j.Directives[0]
		return strings.TrimSpace(options(j.Options) + " " + strings.TrimSpace(d.FaultOption+" "+d.Fault.EN))
	},
	// The directives at the start of a script, and why sbatch ignores some.
	"head": func(in string) string {
		j := Read("", []byte("#!/bin/bash\n"+in+"\n")).Jobs[0]
		var all []string
		for _, d := range j.Directives {
			all = append(all, fmt.Sprintf("%q%s of component %d", d.Text, strings.TrimSuffix(" "+string(d.Ignored), " "), d.Component))
		}
		return strings.TrimSpace(strings.Join(all, ", ") + options(j.Options))
	},
	// The option that sbatch reads for a name, and the nearest option for an unknown name.
	"option": func(in string) string {
		full, _, _ := slurm.BatchOption(in)
		near, found := slurm.NearestOption(in)
		if !found && near == "" {
			near = "-"
		}
		return strings.TrimSpace(fmt.Sprintf("%s %t %s", full, full != "", near))
	},
	// The arguments of the programs named prog.
	"words": given,
	// The starts: launcher, program, options, arguments, environment, container.
	"start": func(in string) string {
		j := Read("", []byte(in+"\n")).Jobs[0]
		var all []string
		for _, s := range j.Starts {
			all = append(all, started(s))
		}
		for _, c := range j.Containers {
			text := fmt.Sprintf("in %s %s passes=%t file=%t unknown=%t", c.Runtime, word(c.Image), c.PassesEnv, c.EnvFile, c.MountsUnknown)
			for _, m := range c.Mounts {
				text += " " + word(m.Host) + ":" + word(m.Inside)
			}
			all = append(all, strings.TrimSpace(text+" "+strings.Join(slices.Sorted(maps.Keys(c.Env)), " ")))
		}
		return strings.Join(all, "; ")
	},
}

func counts(j *Job) string {
	n, exact, ok := j.Nodes()
	gpus, _, counted := j.GPUs()
	tasks, tasked := j.TasksPerNode(j.Options)
	return fmt.Sprintf("nodes %d exact=%t known=%t, GPUs %d %t, tasks %d %t", n, exact, ok, gpus, counted, tasks, tasked)
}

func started(s *Start) string {
	text := fmt.Sprintf("%s %q%s", s.Launcher, s.Program.Text(), options(s.Flags))
	if s.Module {
		text += " module"
	}
	if s.FlagsUnknown {
		text += " unknown"
	}
	for _, a := range s.ProgramArgs {
		text += " " + word(a.Value)
	}
	env := s.Command.Env
	for _, n := range env.Names() {
		v, _ := env.Env(n)
		text += " $" + n + "=" + word(v)
	}
	if s.Command.Remote != nil {
		text += " remote"
	}
	if env.Login {
		text += " login"
	}
	return text
}

// Each line of the file has an input and, after the arrow, its reading.
func TestEdgesAreReadAsTheyAre(t *testing.T) {
	const file, arrow = "testdata/edges.txt", " =>"
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	escaped := strings.NewReplacer("\n", `\n`)
	var got []string
	for line := range strings.SplitSeq(strings.TrimSuffix(string(want), "\n"), "\n") {
		in, _, _ := strings.Cut(line, arrow)
		kind, text, _ := strings.Cut(in, " ")
		read := edgeReadings[kind]
		require.NotNil(t, read, line)
		got = append(got, strings.TrimRight(in+arrow+" "+escaped.Replace(read(strings.ReplaceAll(text, `\n`, "\n"))), " "))
	}
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(strings.Join(got, "\n")+"\n"), 0o644))
		return
	}
	require.Equal(t, strings.Split(strings.TrimSuffix(string(want), "\n"), "\n"), got, "run go test ./slurm/script -update and read the difference")
}
