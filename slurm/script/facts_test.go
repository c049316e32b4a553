package script

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// given returns the arguments of the programs named prog, one program per line.
func given(src string) string {
	var lines []string
	for _, c := range Read("", []byte(src)).Jobs[0].Commands {
		if c.Name() != "prog" {
			continue
		}
		var words []string
		for _, a := range c.Args[1:] {
			words = append(words, word(a.Value))
		}
		lines = append(lines, strings.Join(words, " "))
	}
	return strings.Join(lines, "\n")
}

// Programs do not get a variable after export -n.
func TestExportIsTakenBack(t *testing.T) {
	for src, want := range map[string]bool{
		"export X=1; prog": true, "export X=1; export -n X; prog": false, "X=1; export X; export -n X=2; prog": false, "export X=1; export -n X; export X; prog": true,
		"export X=1; export -n Y; prog": true, "export X=1; export -p X; prog": true,
		"X=1; srun --export=ALL,X prog": false, "export X=1; srun --export=ALL,X prog": true, "srun --export=ALL,X=1 prog": true,
	} {
		j := Read("", []byte(src+"\n")).Jobs[0]
		_, ok := j.Commands[len(j.Commands)-1].Env.Env("X")
		require.Equal(t, want, ok, src)
	}
}

// A command gets the values that builtins and expansions before it set. A question mark
// precedes a value that the file does not show.
func TestACommandGetsWhatBashGivesIt(t *testing.T) {
	for src, want := range map[string]string{
		`X=1; printf '%s' X; prog $X`:                                      `"1"`,
		`X=1; printf -v X '%s' 2; prog $X`:                                 `?"$X"`,
		`X=1; printf -n X; prog $X`:                                        `"1"`,
		`X=1; prog "${X:-none}"`:                                           `"1"`,
		`X=1; unset X; prog "${X:-none}"`:                                  `?"${X:-none}"`,
		`A=(a b); prog "${A[*]}"`:                                          `"a b"`,
		`A=(a b); prog "${A[@]}"`:                                          `"a" "b"`,
		`A=(a b); prog ${A[*]}`:                                            `"a" "b"`,
		`A=(a b c); prog "${A[-1]}" "${A[1]}" "$A"`:                        `"c" "b" "a"`,
		`A=(a); A+=("b c"); prog "${A[@]}"`:                                `"a" "b c"`,
		`f() { prog "$1" "$#"; }; f a b; f`:                                "\"a\" \"2\"\n?\"$1\" \"0\"",
		`f() { shift; prog "$@"; }; f a b c`:                               `"b" "c"`,
		`set -- x y; prog "$2" "$1"`:                                       `?"$2" ?"$1"`,
		`X=a; (X=b; prog $X); prog $X`:                                     "\"b\"\n\"a\"",
		`X=a; { X=b; }; prog $X`:                                           `"b"`,
		`X=a; X=b prog $X`:                                                 `"a"`,
		`export X=a; srun --export=ALL,X bash -c 'prog $X'`:                `"a"`,
		`export X=a; srun --export=ALL,X=b bash -c 'prog $X'`:              `"b"`,
		`for i in 1 2; do :; done; prog "$i"`:                              `?"$i"`,
		`if true; then X=1; else X=2; fi; prog "$X"`:                       `"1"`,
		`X=1; if false; then X=2; fi; prog "$X"`:                           `"1"`,
		`if false; then X=2; else X=3; fi; prog "$X"`:                      `"3"`,
		`if false; then X=2; elif true; then X=4; else X=5; fi; prog "$X"`: `"4"`,
	} {
		require.Equal(t, want, given(src+"\n"), src)
	}
}

func TestTheOptionsOfAStepAreRead(t *testing.T) {
	for line, want := range map[string]string{
		"srun -N 2 -n 8 prog":                   ` 1:nodes="2" 1:ntasks="8"`,
		"srun -N2 -ln8 prog":                    ` 1:nodes="2" 1:label 1:ntasks="8"`,
		"srun -N$X prog":                        ` 1:nodes=?"$X"`,
		"srun $SRUN_ARGS -N 2 prog":             ` 1: 1:nodes="2"`,
		"srun --nodes=2 --ntasks 8 prog":        ` 1:nodes="2" 1:ntasks="8"`,
		"srun --exclusive --mem=0 prog":         ` 1:exclusive 1:mem="0"`,
		"srun --export=A=1,B -u prog --nodes 3": ` 1:export="A=1,B" 1:unbuffered`,
		"srun -K prog":                          ` 1:kill-on-bad-exit`,
		"srun -K0 prog":                         ` 1:kill-on-bad-exit="0"`,
		"srun -lK1 prog":                        ` 1:label 1:kill-on-bad-exit="1"`,
		"srun -I30 prog":                        ` 1:immediate="30"`,
		"srun $X --nodes 2 prog":                ` 1: 1:nodes="2"`,
		`srun "" --nodes 2 prog`:                "",
		"srun -K 1 prog":                        ` 1:kill-on-bad-exit`,
		"srun -- prog":                          "",
	} {
		steps := Read("", []byte(line+"\n")).Jobs[0].Steps
		require.Len(t, steps, 1, line)
		require.Equal(t, want, options(steps[0].Options), line)
	}
}

func TestAProgramsOptionIsTheLastOfItsName(t *testing.T) {
	for args, want := range map[string]string{
		"--save /a":              `1 save="/a"`,
		"--save=/a":              `1 save="/a"`,
		"--save /a --save /b":    `1 save="/b"`,
		"--save /a --load=/b":    `1 save="/a"`,
		"--bf16 --save":          `1 save`,
		"--save --bf16":          `1 save`,
		"--save -1":              `1 save="-1"`,
		"--save \\\n/a":          `2 save="/a"`,
		"--load /a --no-save /b": "",
	} {
		st := Read("", []byte("torchrun p.py "+args+"\n")).Jobs[0].Starts[0]
		o, ok := st.ProgramFlag("--save")
		got := ""
		if ok {
			got = strings.Replace(strings.TrimSpace(options(Options{o})), ":", " ", 1)
		}
		require.Equal(t, want, got, args)
	}
	require.Equal(t, []string{"--nnodes", "--num_machines", "--num_nodes"}, []string{Torchrun.NodesFlag(), Accelerate.NodesFlag(), DeepSpeed.NodesFlag()})
}

func TestOnlyExportedVariablesReachAProgram(t *testing.T) {
	for src, want := range map[string]string{
		"export X=1":          "X=1",
		"X=1":                 "",
		"X=1; export X":       "X=1",
		"X=1; export X; X=2":  "X=2",
		"export X":            "",
		"export X=":           "X=",
		"declare -x X=1":      "X=1",
		"declare -i X=1":      "",
		"set -a; X=1":         "X=1",
		"export X=1; unset X": "",
	} {
		sh := Read("", []byte(src+"\n")).Jobs[0].Shell
		got := ""
		if v, ok := sh.Env("X"); ok {
			got = "X=" + v.String()
		}
		require.Equal(t, want, got, src)
		require.Equal(t, want != "", len(sh.Names()) == 1, src)
	}
	require.Equal(t, `"2"`, given("docker run -e X=1 img bash -c 'export X=2; bash -c \"prog \\$X\"'\n"), "a shell in a container has what was exported there")
	sh := Read("", []byte("A=(a b); export A\n")).Jobs[0].Shell
	_, ok := sh.Env("A")
	require.False(t, ok, "bash exports no array")
}

// Options that set turns on stay on. Words after -- are not options.
func TestWhatSetTurnsOn(t *testing.T) {
	for src, want := range map[string][2]bool{ // errexit, pipefail
		"set -e": {true, false}, "set -eo pipefail": {true, true}, "set -e; set +e": {false, false}, "set -o pipefail -o errexit": {true, true},
		"set -- -e": {false, false}, "set -e -- +e": {true, false}, "set x -e": {false, false}, "set many -e": {false, false}, "set -e -o": {true, false},
	} {
		sh := Read("", []byte(src+"\n")).Jobs[0].Shell
		require.Equal(t, want, [2]bool{sh.ErrExit, sh.PipeFail}, src)
	}
}

// A failure is hidden if the command after || always succeeds.
func TestWhatHidesAFailureIsKnown(t *testing.T) {
	for after, hidden := range map[string]bool{
		"true": true, ":": true, "echo failed": true, "printf x": true, "date": true, "/bin/true": true, "exit 0": true, "{ sync; true; }": true,
		"{ echo failed; exit 1; }": false, "exit": false, "exit 1": false, "false": false, "exit $?": false, "touch failed": false, "X=1": false,
	} {
		c := Read("", []byte("prog || "+after+"\n")).Jobs[0].Commands[0]
		require.Equal(t, "prog", c.Name(), after)
		require.Equal(t, hidden, c.Masked == 1, after)
		require.True(t, c.Checked, after)
	}
}

// For each container runtime, the reading has the environment, the mounts and the
// working directory inside.
func TestContainersAreReadAsTheirRuntimesDo(t *testing.T) {
	for line, want := range map[string]string{
		"docker run --rm -v /a:/b -w /b img prog x":           `docker "img" passes=false unknown=false in "/b" /a:/b; prog x`,
		"docker --debug container run -it img prog":           `docker "img" passes=false unknown=false in ; prog`,
		"docker run --entrypoint prog img x":                  `docker "img" passes=false unknown=false in ; prog x`,
		"docker exec -w /b box prog x":                        `docker "box" passes=false unknown=true in "/b"; prog x`,
		"docker create --mount type=bind,src=/a,dst=/b img":   `docker "img" passes=false unknown=false in  /a:/b; `,
		"docker pull img":                                     "",
		"podman-hpc run img prog":                             `podman "img" passes=false unknown=false in ; prog`,
		"cd /w; singularity exec --nv -B /a:/b i.sif prog":    `singularity "i.sif" passes=true unknown=false in "/w" /a:/b; prog`,
		"cd /w; apptainer run --cleanenv --pwd /x i.sif prog": `apptainer "i.sif" passes=false unknown=false in "/x"; prog`,
		"apptainer build i.sif docker://img":                  "",
		"cd /w; shifter --image=img prog x":                   `shifter ? passes=true unknown=true in "/w"; prog x`,
		"enroot start -m /a:/b -e A=1 img prog":               `enroot "img" passes=true unknown=false in  /a:/b; prog`,
		"enroot import docker://img":                          "",
	} {
		j := Read("", []byte(line+"\n")).Jobs[0]
		got := ""
		for _, c := range j.Containers {
			text := func(v Value) string {
				if len(v) == 0 {
					return ""
				}
				return word(v)
			}
			image := text(c.Image)
			if image == "" {
				image = "?"
			}
			got = c.Runtime + " " + image + " passes=" + strconv.FormatBool(c.PassesEnv) + " unknown=" + strconv.FormatBool(c.MountsUnknown) + " in " + text(c.Workdir)
			for _, m := range c.Mounts {
				got += " " + m.Host.String() + ":" + m.Inside.String()
			}
			got += "; "
			for _, x := range j.Commands {
				if x.Name() == "prog" {
					require.Same(t, c, x.Container, line)
					got += strings.Join(append([]string{"prog"}, Texts(x.Args[1:])...), " ")
				}
			}
		}
		require.Equal(t, want, got, line)
	}
}

// Arithmetic on operands with known ranges gives a range.
func TestSumsAreRanges(t *testing.T) {
	for sum, want := range map[string]Span{
		"7":                            {7, 7},
		"20000 + SLURM_JOB_ID % 10000": {20000, 29999},
		"20000 + UNKNOWN % 10000":      {20000, 29999},
		"RANDOM % 8":                   {0, 7},
		"RANDOM % 100000":              {0, 32767},
		"RANDOM / 2":                   {0, 16383},
		"1 - RANDOM":                   {-32766, 1},
		"RANDOM - 1":                   {-1, 32766},
		"RANDOM * 2 + 1":               {1, 65535},
		"SLURM_NNODES * 8":             {32, 32},
		"SLURM_NTASKS":                 {8, 8},
		"SLURM_NPROCS":                 {8, 8},
		"-RANDOM":                      {-32767, 0},
		"(RANDOM)":                     {0, 32767},
		"SRANDOM % 1000":               {0, 999},
		"SLURM_JOB_ID":                 {1, 1 << 26},
		"SLURM_PROCID":                 {0, 512},
		"SLURM_NTASKS_PER_NODE":        {2, 2},
		"SLURM_CPUS_PER_TASK":          {6, 6},
		"SLURM_GPUS_ON_NODE":           {8, 8},
		"SLURM_ARRAY_TASK_ID + 1":      {1, 13},
	} {
		j := Read("", []byte("#!/bin/bash\n#SBATCH -N 4 --ntasks-per-node=2 -c 6 --gres=gpu:8 --array=1,3-12%40\nprog $(("+sum+"))\n")).Jobs[0]
		got, ok := j.Span(j.Commands[len(j.Commands)-1].Args[1].Value)
		require.True(t, ok, sum)
		require.Equal(t, want, got, sum)
	}
	for _, sum := range []string{"UNKNOWN", "UNKNOWN % 0", "UNKNOWN % RANDOM", "UNKNOWN + 1", "1 + UNKNOWN", "UNKNOWN / 2", "(0-RANDOM) * 2", "RANDOM / (RANDOM - 1)", "(RANDOM - 1) % 4"} {
		j := Read("", []byte("prog $(("+sum+"))\n")).Jobs[0]
		_, ok := j.Span(j.Commands[len(j.Commands)-1].Args[1].Value)
		require.False(t, ok, sum)
	}
}

// A command with a broken line continuation is read as its author intended, and the
// reading has the line of the break.
func TestBrokenContinuationsAreJoined(t *testing.T) {
	for src, want := range map[string]struct {
		line int
		text string
	}{
		"prog \\\n  --a 1 \\ \n  --b 2\n":                {2, `\ `},
		"prog \\\n  --a 1\n  --b 2\n":                    {3, "--b"},
		"prog \\\n  --a 1 # (one; two)\n  --b 2\n":       {3, "--b"},
		"prog \\\n  --a 1 \\ # one\n  --b 2\n":           {2, `\ # one`},
		"prog \\\n  --a 1 \\  # one\n  --b 2\n":          {2, `\  # one`},
		"prog \\\n  --a 1 \\\t# it's\n  --b 2\n":         {2, "\\\t# it's"},
		"prog \\\n  --a 1 \\ # one \\\n  --b 2\n":        {2, `\ # one `},
		"prog --a \\ # one\n  1 \\\n  --b 2\n":           {1, `\ # one`},
		"prog --a 1 \\\n  --b 2 \\ # one\necho done\n":   {2, `\ # one`},
		"prog --a 1 \\\n  --b 2 \\  # one\n":             {2, `\  # one`},
		"A=(\n  --a 1 \\ # one\n  --b 2)\nprog ${A[@]}":  {2, `\ # one`},
		"A=(\n  --a 1 \\  # one\n  --b 2)\nprog ${A[@]}": {2, `\  # one`},
		"A=(\n  --a 1\n  --b 2 \\ \n)\nprog ${A[@]}":     {3, `\ `},
		"prog \\\n  --a 1 \\\n\n  --b 2\n":               {4, "--b"},
		"prog \\\n  --a 1 \\\n  # --c 3\n  --b 2\n":      {4, "--b"},
		"prog \\\n  --a 1 \\\n# --c 3\n  --b 2\n":        {4, "--b"},
	} {
		j := Read("", []byte(src)).Jobs[0]
		require.Len(t, j.Breaks, 1, src)
		require.Equal(t, want.line, j.Breaks[0].Line, src)
		require.Equal(t, want.text, j.Breaks[0].Text, src)
		require.Equal(t, `"--a" "1" "--b" "2"`, given(src), src)
	}
	for _, src := range []string{
		"prog --a\nprog --b\n", "prog; --b\n", "prog\nX=1 --b\n", "prog --a\nrun.py\n", "prog && {\nprog\n}\n", "prog --a 1 \\\n  --b 2\n",
		"tr -d \\ \nprog --a\n", "prog |\n  cut -f1 -d \\ \nprog --a\n", "grep -c \\ # f \\\n  g\nprog --a\n",
		"grep \\ # f\nprog --a\n", "IFS=\\ \nprog --a\n", "prog \\\n  --a /my\\ #dir \\\n  --b 2\n", "prog --a '\\ # x' \\\n  --b 2\n", "prog <<E\n--a \\ # one\n  --b\nE\n",
	} {
		require.Empty(t, Read("", []byte(src)).Jobs[0].Breaks, src)
	}
	many := "prog \\\n" + strings.Repeat("  --a 1 \\ # it's one\n", 13) + "  --b 2\n"
	require.Len(t, Read("", []byte(many)).Jobs[0].Breaks, 13)
	require.Equal(t, strings.Repeat(`"--a" "1" `, 13)+`"--b" "2"`, given(many))
}

// The reading has every comment, wherever it is. Lint searches the comments.
func TestCommentsAreReadEverywhere(t *testing.T) {
	got := Read("", []byte("#!/bin/bash\n# a\nif true; then\n  # b\n  prog # c\nfi\nf() {\n  # d\n  prog\n}\n")).Jobs[0].Comments
	require.Subset(t, got, []string{" a", " b", " c", " d"})
}
