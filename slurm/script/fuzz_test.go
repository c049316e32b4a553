package script

import (
	"slices"
	"testing"
)

// FuzzRead requires that Read and Settle accept any bytes, and that the line of every
// command is a line of the file.
func FuzzRead(f *testing.F) {
	for _, s := range []string{
		"#!/bin/bash\n#SBATCH -N 2\nsrun bash -c 'torchrun --nnodes $SLURM_NNODES train.py' &\nwait\n",
		"cat > a.sh <<EOF\n$X \\$Y $(hostname)\nEOF\nsrun bash a.sh\n",
		"f() { f; }\nf\n", "A=(a b)\necho \"${A[@]}\" ${A[-1]} ${A[$X]}\n", "sbatch <<EOT\n#SBATCH -N $1\nsbatch <<EOS\nEOS\nEOT\n",
		"if [ 1 -gt 2 ]; then\n", "echo 'a\n", "x=$(\n", "\xef\xbb\xbf#!/bin/sh\r\n", "case x in\n", "#SBATCH --a=\"\n", "eval \"$X\"\nbash -c \"bash -c \\\"bash -c x\\\"\"\n",
		"docker run -it -v a:b --mount src=x,dst=y img python x.py", "ssh h <<E\nE\n", "trap 'f' USR1\nf() { exit; }\n", "\U000f0000 $X\n", "((x++)); for ((i=0;i<3;i++)); do :; done",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		s := Read("fuzz.sh", src)
		for _, j := range slices.Concat(s.Jobs, Settle("fuzz.sh", src).Jobs) {
			_ = j.Training(pretrains)
			for _, c := range j.Commands {
				if c.Line < 1 || c.Line > len(s.Lines)+2 {
					t.Fatalf("command on line %d of %d", c.Line, len(s.Lines))
				}
			}
		}
	})
}
