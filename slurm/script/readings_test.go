package script

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// The golden file has the reading of each script: its directives, its commands in the
// order in which they run with their words, and what they start. The scripts are those of
// lint's tests, and one with many constructs.
func TestReadingsStayAsTheyAre(t *testing.T) {
	var files []string
	for _, pattern := range []string{"testdata/*.sh", "../lint/testdata/labelled/*.sh", "../lint/testdata/documents/*.sh"} {
		found, err := filepath.Glob(pattern)
		require.NoError(t, err)
		files = append(files, found...)
	}
	require.Greater(t, len(files), 50)
	var b strings.Builder
	for _, f := range files {
		src, err := os.ReadFile(f)
		require.NoError(t, err)
		fmt.Fprintf(&b, "== %s\n", filepath.Base(f))
		dump(&b, Read(f, src))
		for _, j := range Settle(f, src).Jobs {
			if st := j.Training(pretrains); st != nil {
				fmt.Fprintf(&b, "settled %d %s%s:", st.Line, st.Program.Text(), options(st.Flags))
				for _, a := range st.ProgramArgs {
					text, ok := j.Filled(a.Value)
					fmt.Fprintf(&b, " %s", mark(text, ok))
				}
				b.WriteByte('\n')
			}
			for _, c := range j.Choices {
				fmt.Fprintf(&b, "chosen %d %s=%s %t\n", c.Line, c.Name, c.Taken, c.Default)
			}
		}
	}
	const golden = "testdata/readings.golden"
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(b.String()), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, strings.Split(string(want), "\n"), strings.Split(b.String(), "\n"), "run go test ./slurm/script -update and read the difference")
}

// mark returns text as one word, after a question mark if the file does not show it.
func mark(text string, known bool) string {
	if !known {
		return fmt.Sprintf("?%q", text)
	}
	return fmt.Sprintf("%q", text)
}

func word(v Value) string {
	_, known := v.Literal()
	return mark(v.String(), known)
}

func options(all Options) string {
	text := ""
	for _, o := range all {
		text += fmt.Sprintf(" %d:%s", o.Line, o.Name)
		if o.Has {
			text += "=" + word(o.Value)
		}
	}
	return text
}

// trueNames returns the names that are true, sorted.
func trueNames(all map[string]bool) string {
	var set []string
	for name, on := range all {
		if on {
			set = append(set, name)
		}
	}
	slices.Sort(set)
	return strings.Join(set, ",")
}

func dump(b *strings.Builder, s *Script) {
	for _, j := range s.Jobs {
		nodes, exact, known := j.Nodes()
		gpus, _, counted := j.GPUs()
		tasks, tasked := j.TasksPerNode(nil)
		fmt.Fprintf(b, "job %q batch=%t nodes=%d,%t,%t gpus=%d,%t tasks=%d,%t several=%t%s\n", j.Shebang, j.Batch(), nodes, exact, known, gpus, counted, tasks, tasked, j.Several(), options(j.Options))
		for _, d := range j.Directives {
			if d.Ignored != "" || d.Fault.EN != "" {
				fmt.Fprintf(b, "directive %d %q %s %s %s\n", d.Line, d.Text, d.Ignored, d.Fault.EN, d.FaultOption)
			}
		}
		for _, c := range j.Commands {
			command(b, c)
		}
		for _, st := range j.Starts {
			fmt.Fprintf(b, "start %d %s %q module=%t unknown=%t%s:", st.Line, st.Launcher, st.Program.Text(), st.Module, st.FlagsUnknown, options(st.Flags))
			for _, a := range st.ProgramArgs {
				fmt.Fprintf(b, " %s", word(a.Value))
			}
			b.WriteByte('\n')
		}
		for _, step := range append(slices.Clone(j.Steps), j.Allocations...) {
			fmt.Fprintf(b, "step %d unknown=%t%s\n", step.Line, step.OptionsUnknown, options(step.Options))
		}
		for _, c := range j.Containers {
			fmt.Fprintf(b, "container %d %s %s passes=%t file=%t unknown=%t in %s%s", c.Line, c.Runtime, word(c.Image), c.PassesEnv, c.EnvFile, c.MountsUnknown, word(c.Workdir), options(c.Options))
			for _, m := range c.Mounts {
				fmt.Fprintf(b, " %s:%s", word(m.Host), word(m.Inside))
			}
			b.WriteByte('\n')
		}
		for _, h := range j.Handlers {
			fmt.Fprintf(b, "trap %d %v %q ignores=%t resets=%t\n", h.Line, h.Signals, h.Text, h.Ignores, h.Resets)
		}
		fmt.Fprintf(b, "written %d submitted %d\n", len(j.Written), len(j.Submissions))
		for _, r := range j.Refusals {
			fmt.Fprintf(b, "refused %d %s\n", r.Line, r.Message)
		}
		for _, x := range j.Breaks {
			fmt.Fprintf(b, "break %d %q\n", x.Line, x.Text)
		}
		if j.Shell != nil {
			for _, name := range j.Shell.Names() {
				v, _ := j.Shell.Env(name)
				fmt.Fprintf(b, "env %s=%s\n", name, word(v))
			}
		}
	}
}

func command(b *strings.Builder, c *Command) {
	fmt.Fprintf(b, "%d-%d", c.Line, c.End)
	for _, a := range c.Args {
		fmt.Fprintf(b, " %s", word(a.Value))
	}
	set := trueNames(map[string]bool{
		"checked": c.Checked, "condition": c.Condition, "trap": c.Trap, "subst": c.Subst, "errexit": c.ErrExit, "sourced": c.Sourced,
		"piped": c.PipedInto, "step": c.Step != nil, "container": c.Container != nil, "remote": c.Remote != nil,
		"background": c.Background > 0, "masked": c.Masked > 0, "loop": c.Loop != nil, "by": c.By != nil, "branch": len(c.Branch) > 0,
	})
	if set != "" {
		fmt.Fprintf(b, " [%s]", set)
	}
	if len(c.Assigns) > 0 {
		fmt.Fprintf(b, " with %v", c.Assigns)
	}
	if c.Pipe != nil {
		fmt.Fprintf(b, " | %s %t", c.Pipe.Reader, c.Pipe.Safe)
	}
	for _, r := range c.Redirects {
		fmt.Fprintf(b, " %s%s", r.Op, word(r.Target))
		if r.Doc != nil {
			fmt.Fprintf(b, "(%t %q)", r.Doc.Quoted, r.Doc.Text())
		}
	}
	for _, e := range c.Expansions {
		if e.Guarded || e.Op != "" || e.Var == nil {
			fmt.Fprintf(b, " $%s%s:%t:%t", e.Name, e.Op, e.Guarded, e.Quoted)
		}
	}
	if c.CallLine > 0 {
		fmt.Fprintf(b, " called from %d", c.CallLine)
	}
	b.WriteByte('\n')
}

// The reader expands words as bash does. A word stays unknown if its value depends on
// facts outside the file, or on an operator that cuts a value; unknown is never wrong.
func TestWordsAreExpandedAsBashDoes(t *testing.T) {
	bash, err := exec.LookPath("bash")
	require.NoError(t, err)
	const set = "a=/x/y.tar.gz; n=7; m=-3; e=''; list='p q'; arr=(one 'two three' four); arr[5]=six; i=a; up=AbC\n"
	expanded := func(word string) (text string, known bool) {
		var got []string
		known = true
		for _, c := range Read("", []byte(set+"echo "+word+"\n")).Jobs[0].Commands {
			if c.Name() != "echo" || c.Line != 2 || c.Subst {
				continue
			}
			for _, a := range c.Args[1:] {
				text, ok := a.Value.Literal()
				got, known = append(got, text), known && ok
			}
		}
		return strings.Join(got, " "), known
	}
	words := []string{
		`"${#a}"`, `"${#e}"`, `"${e:-d}"`, `"${e-d}"`, `"${n:-d}"`, `"${n-d}"`, `"${n:=d}"`, `"${n:?d}"`, `"${arr[1]}"`, `"${arr[@]}"`, `"${#arr[@]}"`,
		`"${arr[*]}"`, `"${arr}"`, `"${arr[0]}"`, `$((n+m))`, `$((n/2))`, `$((n%3))`, `$((0x1f))`, `$((010))`, `$(((n+1)*2))`, `$[n+1]`, `$'a\tb\x41\101'`,
		`'$n'`, `"\$n \"q\" \\ \z"`, `a\ b\$`, `$n$m"$e"`, `"$list"`, `$list`, `${n}0`, `"$e"$n`, `$(echo hi)`,
		`"${a/x/z}"`, `"${a//\//_}"`, `"${a//./}"`, `"${a/./-}"`, `"${a//e}"`, `${a//"."/$n}`, `"${n//7/12}"`,
	}
	program := set // one bash prints all words, each in a subshell of its own
	for _, word := range words {
		program += "(echo " + word + ") && printf '\\0' || exit\n"
	}
	out, err := exec.Command(bash, "-c", program).Output()
	require.NoError(t, err)
	want := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	require.Len(t, want, len(words))
	for i, word := range words {
		text, known := expanded(word)
		require.True(t, known, word)
		require.Equal(t, strings.TrimSuffix(want[i], "\n"), text, word)
	}
	for _, word := range []string{
		`"${a%.*}"`, `"${a%%.*}"`, `"${a#*/}"`, `"${a##*/}"`, `"${a//[a-z]/x}"`, `"${a/%x/z}"`, `"${a/x/&z}"`, `"${a:1}"`, `"${a:1:3}"`, `"${up,,}"`, `"${up^^}"`, `"${!i}"`,
		`"${u:-d}"`, `"${u-d}"`, `$((n-m*2))`, `$((-n/2))`, `$((-n%3))`, `$((n<<2))`, `$((n>>1))`, `$((n&6))`, `$((n|8))`, `$((n^5))`, `$((~n))`,
		`$((n>m))`, `$((n<m))`, `$((n>7))`, `$((n>=7))`, `$((n>=8))`, `$((n<=6))`, `$((n<=7))`, `$((n<7))`, `$((n==7))`, `$((n!=7))`, `$((n&&m))`,
		`$((n&&0))`, `$((0||m))`, `$((0||0))`, `$((!n))`, `$((!0))`, `$((n>3?1:2))`, `$((n>30?1:2))`, `$((2**10))`, `$((1<2==1))`, `$((+n))`,
	} {
		_, known := expanded(word)
		require.False(t, known, word)
	}
}
